"""Decoded JSON, documents and judged results with everything private in them replaced. Pure."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from orchestrator.report.redact.pseudonyms import Pseudonyms

Json = dict[str, "Json"] | list["Json"] | str | int | float | bool | None

_TOKENS: Final = frozenset({"ids", "prompt_ids", "used_ids", "pin_ids", "end_ids", "bos_id"})
_DIGESTS: Final = frozenset({"text_hash"})
# The vocabulary of the verdict itself; a phone named "PASS" must not change it.
_KEPT: Final = frozenset(
    {
        "id", "kind", "outcome", "cause", "result", "unit", "phase", "schema", "os", "model",
        "product_type", "chain", "launch", "digest", "package_sha256",
    }
)  # fmt: skip
# Fields of reports and settings that say who, whatever their text looks like.
_PRIVATE: Final = frozenset(
    {
        "crashreporterkey", "incident", "incident_id", "devicename", "serialnumber", "serial",
        "deviceidentifierforvendor", "sleepwakeuuid", "bootsessionuuid", "userid", "storecohort",
        "team_id", "webhook", "secret", "ticket", "owner", "coalitionname", "beta_guid",
        "developmentregion", "crashreporter_key",
    }
)  # fmt: skip
_FIELD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.]{0,63}")
_PROCESS_LISTS: Final = frozenset({"processes", "processbypid"})


def redacted(value: Json, pseudonyms: Pseudonyms, app_name: str, field: str = "") -> Json:
    """Return decoded JSON with private texts, tokens and process names replaced.

    Args:
        value: Any part of a document; hostile.
        pseudonyms: Of this copy.
        app_name: The app under test, the one process that keeps its name.
        field: The name of the value, decides what it is.
    """
    if isinstance(value, dict):
        own = _with_processes(value, pseudonyms, app_name) if field in _PROCESS_LISTS else value
        return {
            _key(key, pseudonyms): redacted(item, pseudonyms, app_name, key.casefold())
            for key, item in own.items()
        }
    if isinstance(value, list):
        return [
            redacted(
                _process(item, pseudonyms, app_name) if field in _PROCESS_LISTS else item,
                pseudonyms,
                app_name,
                field if not isinstance(item, dict) else "",
            )
            for item in value
        ]
    return _scalar(value, pseudonyms, app_name, field)


def _key(key: str, pseudonyms: Pseudonyms) -> str:
    """Return a field's name as it is, and a text that stands where a name should be redacted."""
    return key if _FIELD.fullmatch(key) else pseudonyms.text(key)


def _scalar(
    value: str | int | float | bool | None, pseudonyms: Pseudonyms, app_name: str, field: str
) -> Json:
    if field in _TOKENS and isinstance(value, int) and not isinstance(value, bool):
        return pseudonyms.token(value)
    if not isinstance(value, str) or field in _KEPT:
        return value
    if field in _DIGESTS:
        return pseudonyms.digest(value)
    if field in _PRIVATE:
        return pseudonyms.name("private", value) if value else value
    if field in ("largestprocess", "procname", "parentproc", "responsibleproc"):
        return _process_name(value, pseudonyms, app_name)
    return pseudonyms.text(value)


def _process(item: Json, pseudonyms: Pseudonyms, app_name: str) -> Json:
    if isinstance(item, dict) and isinstance(item.get("name"), str):
        return {**item, "name": _process_name(str(item["name"]), pseudonyms, app_name)}
    return item


def _with_processes(
    value: dict[str, Json], pseudonyms: Pseudonyms, app_name: str
) -> dict[str, Json]:
    return {pid: _process(item, pseudonyms, app_name) for pid, item in value.items()}


def _process_name(name: str, pseudonyms: Pseudonyms, app_name: str) -> str:
    return name if name == app_name else pseudonyms.name("process", name)


def _result_text(value: str, pseudonyms: Pseudonyms, field: str) -> str:
    if field == "process":  # of a jetsam victim: short names are learnt by no text
        return pseudonyms.name("process", value)
    return value if field in _KEPT else pseudonyms.text(value)


def redacted_result(value: Any, pseudonyms: Pseudonyms, field: str = "") -> Any:  # noqa: ANN401
    """Return judged results (documents and values, nested) with their private texts replaced."""
    if isinstance(value, str):
        return _result_text(value, pseudonyms, field)
    if isinstance(value, msgspec.Struct):
        names = value.__struct_fields__
        changed = {n: redacted_result(getattr(value, n), pseudonyms, n) for n in names}
        return msgspec.structs.replace(value, **changed)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = tuple(each.name for each in dataclasses.fields(value) if each.init)
        changed = {n: redacted_result(getattr(value, n), pseudonyms, n) for n in names}
        return dataclasses.replace(value, **changed)
    if isinstance(value, list | tuple | frozenset):
        return type(value)(redacted_result(item, pseudonyms, field) for item in value)
    if isinstance(value, dict):
        return {key: redacted_result(item, pseudonyms, str(key)) for key, item in value.items()}
    return value
