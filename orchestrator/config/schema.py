"""The JSON Schema of `fleet.yaml`, for editors, and its keys as rows of the reference page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from orchestrator.config.key_texts import KEY_TEXTS
from orchestrator.config.model import FleetConfig
from orchestrator.config.scenario_catalog import SCENARIOS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Node = dict[str, Any]  # of a JSON Schema

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
REQUIRED: Final = object()
_REFERENCE: Final = "#/$defs/"


@dataclass(frozen=True, slots=True)
class Key:
    """One key of the file."""

    path: str  # dotted; `[]` after a list of blocks
    kind: str
    default: object  # REQUIRED where there is none
    text: str


def json_schema(limits: Mapping[str, Mapping[str, str]]) -> Node:
    """Return the schema of `fleet.yaml`.

    Args:
        limits: Of each check, by check id and limit name, what the limit is.
    """
    schema = FleetConfig.model_json_schema(by_alias=True)
    schema = {"$schema": DIALECT, **schema, "title": "fleet.yaml"}
    for path, node in _nodes(schema, schema, ""):
        node.pop("title", None)
        if path in KEY_TEXTS:
            node["description"] = KEY_TEXTS[path]
    properties = schema["properties"]
    properties["scenario"]["enum"] = list(SCENARIOS)
    properties["checks"] = {
        "description": KEY_TEXTS["checks"],
        "type": "object",
        "additionalProperties": False,
        "properties": {check: _limits(names) for check, names in limits.items()},
    }
    return schema


def _limits(names: Mapping[str, str]) -> Node:
    members = {name: {"type": "number", "description": text} for name, text in names.items()}
    return {"type": "object", "additionalProperties": False, "properties": members}


def keys() -> Iterator[Key]:
    """Yield every key of the file with its kind and default, in the order of the model."""
    schema = FleetConfig.model_json_schema(by_alias=True)
    for path, node in _nodes(schema, schema, ""):
        default = node.get("default", REQUIRED)
        yield Key(path, _kind(node), default, KEY_TEXTS.get(path, ""))


def _nodes(schema: Node, block: Node, prefix: str) -> Iterator[tuple[str, Node]]:
    for name, node in list(block.get("properties", {}).items()):
        path = f"{prefix}{name}"
        yield path, node
        nested = _block(schema, node)
        if nested is not None:
            yield from _nodes(schema, nested, f"{path}.")
        item = _block(schema, node.get("items", {}))
        if item is not None:
            yield from _nodes(schema, item, f"{path}[].")


def _block(schema: Node, node: Node) -> Node | None:
    name = str(node.get("$ref", "")).removeprefix(_REFERENCE)
    found: Node = schema["$defs"].get(name, {})
    return found if "properties" in found else None


def _kind(node: Node) -> str:
    if "anyOf" in node:
        return " or ".join(_kind(choice) for choice in node["anyOf"])
    if "enum" in node or "const" in node:
        return ", ".join(str(value) for value in node.get("enum", [node.get("const")]))
    if node.get("type") == "array":
        return "list"
    if "$ref" in node or node.get("type") == "object":
        return "keys"
    kind = node.get("type", "any")
    return " or ".join(kind) if isinstance(kind, list) else str(kind)
