"""Reads `fleet.yaml`, applies `--set`, and answers with a frozen configuration.

Every refusal names file, line, column, rule and value, before any phone is touched.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Final

from pydantic import BaseModel, ValidationError

from orchestrator.config.model import FleetConfig
from orchestrator.config.phrasing import phrase
from orchestrator.config.position import PathKey, Place, PlacedDocument, parse_scalar, parse_yaml
from orchestrator.domain.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pydantic_core import ErrorDetails

_MAX_VALUE_CHARACTERS: Final = 60
_SECRET_KEYS: Final = frozenset({"secret", "webhook"})


def load_config(path: Path | None, settings: Sequence[str] = ()) -> FleetConfig:
    """Return the configuration of a file, overridden by `key=value` settings.

    Args:
        path: The file; None takes the defaults.
        settings: `--set` values in order, keys dotted, values as in YAML.

    Raises:
        ConfigError: For the first thing that breaks a rule, by position.
    """
    document = PlacedDocument("defaults", {}) if path is None else _read(path)
    for setting in settings:
        _apply(document, setting)
    return validate(document)


def config_errors(path: Path) -> list[ConfigError]:
    """Return everything that breaks a rule in a file, by position; broken YAML ends the search."""
    try:
        document = _read(path)
        FleetConfig.model_validate(document.value)
    except ConfigError as error:
        return [error]
    except ValidationError as error:
        return _errors(document, error)
    return []


def place_in(path: Path, key: str) -> Place:
    """Return where a dotted key stands in a file, or the block that it would be in."""
    return _read(path).place_of(key.split("."))


def validate(document: PlacedDocument) -> FleetConfig:
    """Return the configuration of a document.

    Raises:
        ConfigError: For the first thing that breaks a rule, by position.
    """
    try:
        return FleetConfig.model_validate(document.value)
    except ValidationError as error:
        first, *more = _errors(document, error)
        if not more:
            raise first from error
        rule = f"{first.rule}; {len(more)} more, `fleet config check` lists all"
        raise ConfigError(first.file, rule, line=first.line, column=first.column) from error


def _read(path: Path) -> PlacedDocument:
    if path.exists() and not path.is_file():
        raise ConfigError(str(path), "cannot be read: not a file")
    try:
        return parse_yaml(path.read_text(encoding="utf-8"), str(path))
    except OSError as error:
        raise ConfigError(str(path), f"cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(str(path), "is not UTF-8 text") from error


def _apply(document: PlacedDocument, setting: str) -> None:
    key, separator, text = setting.partition("=")
    parts = key.strip().split(".")
    if not separator or not all(parts):
        raise ConfigError("--set", f"key=value is expected, {setting!r}")
    # Check ids hold a dot themselves: `checks.memory.drift.max_mib_per_hour=8`.
    if parts[0] == "checks" and len(parts) == 4:
        parts = ["checks", f"{parts[1]}.{parts[2]}", parts[3]]
    if not isinstance(document.value, dict):
        return  # the file's own shape is wrong: that is reported instead
    target: dict[str, object] = document.value
    for depth, part in enumerate(parts[:-1], start=1):
        nested = target.setdefault(part, {})
        if nested is None:
            nested = target[part] = {}
        if not isinstance(nested, dict):
            raise ConfigError("--set", f"{'.'.join(parts[:depth])} has no keys, {setting!r}")
        target = nested
    target[parts[-1]] = parse_scalar(text)
    for known in [known for known in document.places if known[: len(parts)] == tuple(parts)]:
        del document.places[known]
    document.places[tuple(parts)] = Place(f"--set {key.strip()}")


def _errors(document: PlacedDocument, error: ValidationError) -> list[ConfigError]:
    placed = [(_place(document, detail), detail) for detail in error.errors()]
    placed.sort(key=lambda item: (item[0].line or 0, item[0].column or 0))
    return [
        ConfigError(place.file, _rule(place, detail), line=place.line, column=place.column)
        for place, detail in placed
    ]


def _path(detail: ErrorDetails) -> PathKey:
    return tuple(part for part in detail["loc"] if part != "[key]")


def _place(document: PlacedDocument, detail: ErrorDetails) -> Place:
    return document.place_of(_path(detail))


def _rule(place: Place, detail: ErrorDetails) -> str:
    path = _path(detail)
    name = ".".join(str(part) for part in path) or "the document"
    if detail["type"] == "extra_forbidden":
        return f"unknown key, {str(path[-1])!r}{_suggestion(path)}"
    if detail["type"] == "missing":
        return f"{name} is required"
    # A log of CI is read by many: what may be a secret is not repeated there.
    value = "not shown" if path[-1:] and path[-1] in _SECRET_KEYS else repr(detail["input"])
    if len(value) > _MAX_VALUE_CHARACTERS:
        value = value[: _MAX_VALUE_CHARACTERS - 1] + "…"
    # A setting's place is its key already.
    said = phrase(detail) if place.file.endswith(f" {name}") else f"{name}: {phrase(detail)}"
    return " ".join(f"{said}, {value}".split())


def _suggestion(path: PathKey) -> str:
    block: type[BaseModel] = FleetConfig
    for part in path[:-1]:
        nested = _block_below(block, part)
        if nested is None:
            return ""
        block = nested
    names = [field.alias or name for name, field in block.model_fields.items()]
    close = difflib.get_close_matches(str(path[-1]), names, n=1, cutoff=0.5)
    return f", did you mean {close[0]!r}?" if close else f"; the keys are {', '.join(names)}"


def _block_below(block: type[BaseModel], part: str | int) -> type[BaseModel] | None:
    if isinstance(part, int):
        return block
    field = block.model_fields.get(part)
    if field is None:
        return None
    candidates = [field.annotation, *getattr(field.annotation, "__args__", ())]
    for candidate in candidates:
        if isinstance(candidate, type) and issubclass(candidate, BaseModel):
            return candidate
    return None
