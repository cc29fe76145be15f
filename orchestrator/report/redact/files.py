"""One file of a run to its redacted content, by what the file is."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import msgspec
import yaml

from orchestrator.report.redact.values import Json, redacted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from orchestrator.report.redact.pseudonyms import Pseudonyms

_DECODER: Final = msgspec.json.Decoder()


class NotRedactableError(Exception):
    """A file is not understood well enough to be sent out; `str()` is the reason."""


def redacted_file(path: Path, pseudonyms: Pseudonyms, app_name: str) -> Iterator[bytes]:
    """Yield the redacted content of a file, in parts.

    Raises:
        NotRedactableError: If nobody can say what is in it; it then stays at home.
    """
    if path.suffix == ".ndjson":
        return _lines(path, pseudonyms, app_name)
    if path.suffix == ".json":
        return _json_file(path, pseudonyms, app_name)
    if path.suffix in (".yaml", ".yml"):
        return _yaml_file(path, pseudonyms, app_name)
    if path.name == "console.log":
        return _console(path)
    if "reports" in path.parts:
        return _report(path, pseudonyms, app_name)
    raise NotRedactableError("not a kind of file that is known")


def _decoded(content: bytes) -> Json:
    try:
        value: Json = _DECODER.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise NotRedactableError("not JSON") from error
    return value


def _encoded(value: Json) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _lines(path: Path, pseudonyms: Pseudonyms, app_name: str) -> Iterator[bytes]:
    with path.open("rb") as file:
        for line in file:
            try:
                yield _encoded(redacted(_decoded(line), pseudonyms, app_name)) + b"\n"
            except (NotRedactableError, RecursionError):
                # A torn or damaged line may hold half a text.
                yield _encoded({"redacted": f"unreadable line of {len(line)} bytes"}) + b"\n"


def _json_file(path: Path, pseudonyms: Pseudonyms, app_name: str) -> Iterator[bytes]:
    value = redacted(_decoded(path.read_bytes()), pseudonyms, app_name)
    yield json.dumps(value, indent=2, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def _yaml_file(path: Path, pseudonyms: Pseudonyms, app_name: str) -> Iterator[bytes]:
    try:
        value = yaml.safe_load(path.read_bytes())
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise NotRedactableError("not YAML") from error
    changed = redacted(value, pseudonyms, app_name)
    yield yaml.safe_dump(changed, sort_keys=False, allow_unicode=True).encode()


def _console(path: Path) -> Iterator[bytes]:
    """Yield how much the app printed: what it printed may be what a person wrote or read."""
    with path.open("rb") as file:
        for line in file:
            yield f"[redacted: {len(line.rstrip())} bytes]\n".encode()


def _report(path: Path, pseudonyms: Pseudonyms, app_name: str) -> Iterator[bytes]:
    """Yield a diagnostic report of two JSON documents; older ones of plain text stay at home."""
    header, _, body = path.read_bytes().partition(b"\n")
    for part in (header, body):
        yield _encoded(redacted(_decoded(part), pseudonyms, app_name)) + b"\n"
