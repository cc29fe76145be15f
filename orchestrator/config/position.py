"""YAML to plain values that remember where they stood.

PyYAML's composer gives nodes with marks; this keeps line and column of every key and value,
refuses duplicate keys, and keeps the text of floats so that the version `18.10` stays one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import yaml

from orchestrator.domain.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable

PathKey = tuple[str | int, ...]


class WrittenFloat(float):
    """A float that remembers how it was written."""

    text: str

    def __new__(cls, text: str) -> WrittenFloat:
        """Return the float of a YAML scalar."""
        value = super().__new__(cls, text.replace("_", ""))
        value.text = text
        return value


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value stands."""

    file: str
    line: int | None = None  # from 1
    column: int | None = None  # from 1


@dataclass(slots=True)
class PlacedDocument:
    """A YAML document as plain values, and the place of each key by its path."""

    file: str
    value: object
    places: dict[PathKey, Place] = field(default_factory=dict)

    def place_of(self, path: Iterable[str | int]) -> Place:
        """Return the place of a path, or of its nearest ancestor that has one."""
        key = tuple(path)
        while key and key not in self.places:
            key = key[:-1]
        return self.places.get(key, Place(self.file))


_INT_TAG: Final = "tag:yaml.org,2002:int"
_FLOAT_TAG: Final = "tag:yaml.org,2002:float"
_MAX_DEPTH: Final = 50


def parse_yaml(text: str, file: str) -> PlacedDocument:
    """Return the document of a YAML text.

    Raises:
        ConfigError: With line and column, for broken YAML, duplicate keys, keys that are not
            text, aliases, or nesting deeper than 50.
    """
    document = PlacedDocument(file, None)
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        rule = " ".join(str(error.problem or "broken YAML").split())
        raise ConfigError(
            file,
            f"broken YAML: {rule}",
            line=mark.line + 1 if mark else None,
            column=mark.column + 1 if mark else None,
        ) from error
    except yaml.YAMLError as error:
        raise ConfigError(file, f"broken YAML: {' '.join(str(error).split())}") from error
    except (RecursionError, ValueError) as error:
        raise ConfigError(file, "broken YAML: nested too deeply or not text") from error
    document.value = _plain(node, (), document) if node is not None else {}
    return document


def parse_scalar(text: str) -> object:
    """Return the value of one scalar as it would stand in the file, for `--set`."""
    return parse_yaml(text, "--set").value if text.strip() else ""


def _plain(node: yaml.Node, path: PathKey, document: PlacedDocument) -> object:
    place = Place(document.file, node.start_mark.line + 1, node.start_mark.column + 1)
    document.places.setdefault(path, place)
    if len(path) > _MAX_DEPTH:
        raise ConfigError(document.file, "nested too deeply", line=place.line, column=place.column)
    if isinstance(node, yaml.MappingNode):
        return _plain_mapping(node, path, document)
    if isinstance(node, yaml.SequenceNode):
        return [_plain(item, (*path, i), document) for i, item in enumerate(node.value)]
    return _plain_scalar(node, place)


def _plain_mapping(
    node: yaml.MappingNode, path: PathKey, document: PlacedDocument
) -> dict[str, object]:
    result: dict[str, object] = {}
    for key_node, value_node in node.value:
        line, column = key_node.start_mark.line + 1, key_node.start_mark.column + 1
        key = key_node.value
        if not isinstance(key_node, yaml.ScalarNode) or not isinstance(key, str):
            raise ConfigError(document.file, "a key must be text", line=line, column=column)
        if key in result:
            raise ConfigError(document.file, f"duplicate key, {key!r}", line=line, column=column)
        document.places[(*path, key)] = Place(document.file, line, column)
        result[key] = _plain(value_node, (*path, key), document)
    return result


def _plain_scalar(node: yaml.Node, place: Place) -> object:
    text = str(node.value)
    try:
        if node.tag == _INT_TAG:
            return int(
                text.replace("_", ""), 0 if not text.startswith("0") or len(text) == 1 else 10
            )
        if node.tag == _FLOAT_TAG:
            return WrittenFloat(text.replace(".inf", "inf").replace(".nan", "nan"))
    except ValueError:
        return text  # sexagesimal and other YAML 1.1 oddities stay text
    if node.tag == "tag:yaml.org,2002:bool":
        return text.lower() in ("true", "yes", "on")
    if node.tag == "tag:yaml.org,2002:null":
        return None
    if node.tag in ("tag:yaml.org,2002:str", "tag:yaml.org,2002:timestamp"):
        return text
    raise ConfigError(
        place.file, f"YAML tag is not used here, {node.tag}", line=place.line, column=place.column
    )
