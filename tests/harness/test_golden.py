"""One launch of the Swift app, its schema and the typed records say the same of every record.

The Swift tests hold the same launch and live ones against the same schema, so that a field that is
changed in one language alone fails a test in one of them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final, get_args

import jsonschema
import msgspec
import pytest

from orchestrator.runlog.telemetry import (
    AnyRecord,
    Lifecycle,
    MalformedRecordError,
    Record,
    decode_record,
)

PROTOCOL: Final = Path(__file__).parents[2] / "ios_harness" / "protocol"
LINES: Final = (PROTOCOL / "golden.ndjson").read_bytes().splitlines()
SCHEMA: Final[dict[str, Any]] = json.loads((PROTOCOL / "telemetry.schema.json").read_bytes())
VALIDATOR: Final = jsonschema.Draft202012Validator(SCHEMA)
KINDS: Final[dict[str, type[Record]]] = {
    str(kind.__struct_config__.tag): kind for kind in get_args(AnyRecord)
}

Shape = dict[str, Any]


def test_every_golden_line_is_valid_and_decodes_to_its_kind() -> None:
    for line in LINES:
        VALIDATOR.validate(json.loads(line))
        assert isinstance(decode_record(line), KINDS[json.loads(line)["kind"]])


def test_the_golden_launch_holds_every_kind() -> None:
    assert {json.loads(line)["kind"] for line in LINES} == set(KINDS)
    assert set(SCHEMA["properties"]["kind"]["enum"]) == set(KINDS)


def test_what_is_decoded_is_encoded_to_what_was_written() -> None:
    for line in LINES:
        written = json.loads(line)
        encoded = json.loads(msgspec.json.encode(decode_record(line)))
        assert {key: encoded[key] for key in written} == written


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_schema_and_typed_record_have_the_same_fields_of_the_same_types(kind: str) -> None:
    typed = msgspec.json.schema(KINDS[kind], schema_hook=lambda _: {"type": "object"})
    root = typed["$ref"].rsplit("/", 1)[1]
    assert differences(SCHEMA["$defs"][kind], typed["$defs"][root], typed, kind) == []


def test_a_renamed_a_missing_and_a_retyped_field_are_found() -> None:
    text, number = {"type": "string"}, {"type": "integer"}
    ours = {"type": "object", "properties": {"n": number, "text": text}}
    theirs = {"type": "object", "properties": {"n": text, "texts": text}}
    found = differences(ours, theirs, {}, "kind")
    assert found == ["kind: ['text', 'texts']", "kind.n: ['integer'] is not ['string']"]


def test_a_golden_line_without_one_of_its_fields_is_refused_by_one_of_both() -> None:
    for line in LINES:
        record = json.loads(line)
        for field in set(record) - {"chain"}:
            assert refused({key: value for key, value in record.items() if key != field}), field


def test_a_field_that_nobody_knows_is_refused_by_the_schema_and_read_by_the_decoder() -> None:
    record = {**json.loads(LINES[-1]), "mood": "good"}
    assert not VALIDATOR.is_valid(record)
    assert decode_record(json.dumps(record).encode()) == decode_record(LINES[-1])


def test_records_of_an_older_app_still_read() -> None:
    old = next(json.loads(line) for line in LINES if json.loads(line)["kind"] == "lifecycle")
    del old["origin"]
    record = decode_record(json.dumps(old).encode())
    assert isinstance(record, Lifecycle)
    assert record.origin == "phone"


def refused(record: Shape) -> bool:
    """Whether schema or decoder takes no such record."""
    try:
        decode_record(json.dumps(record).encode())
    except MalformedRecordError:
        return True
    return not VALIDATOR.is_valid(record)


def differences(ours: Shape, theirs: Shape, typed: Shape, where: str) -> list[str]:
    """What two schemas of one object state differently, fields apart that only one can state."""
    ours, theirs = resolved(ours, SCHEMA), resolved(theirs, typed)
    known, decoded = ours.get("properties", {}), theirs.get("properties", {})
    found = [f"{where}: {sorted(odd)}"] if (odd := known.keys() ^ decoded.keys()) else []
    for name in sorted(known.keys() & decoded.keys() - {"kind"}):
        mine, other = types(known[name], SCHEMA), types(decoded[name], typed)
        if not mine <= other | ({"integer"} if "number" in other else set()):
            found.append(f"{where}.{name}: {sorted(mine)} is not {sorted(other)}")
        if mine == {"object"}:
            found += differences(known[name], decoded[name], typed, f"{where}.{name}")
    return found


def resolved(shape: Shape, root: Shape) -> Shape:
    """Follow a reference within its document, and take the object of what may be null."""
    while "$ref" in shape:
        shape = root["$defs"][shape["$ref"].rsplit("/", 1)[1]]
    objects = [each for each in shape.get("anyOf", ()) if "$ref" in each]
    return resolved(objects[0], root) if len(objects) == 1 else shape


def types(shape: Shape, root: Shape) -> set[str]:
    """The JSON types that a schema allows."""
    if "anyOf" in shape:
        return set().union(*(types(each, root) for each in shape["anyOf"]))
    shape = resolved(shape, root)
    allowed = shape.get("enum", [shape["const"]] if "const" in shape else [])
    if allowed:
        return {"string" if isinstance(value, str) else "integer" for value in allowed}
    return {shape["type"]}
