"""The records that decided failing checks, as they stand in `telemetry.ndjson`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from orchestrator.runlog.documents import CheckDocument

_LONGEST: Final = 600  # characters of a record that a page shows


@dataclass(frozen=True, slots=True)
class DecidingRecord:
    """One record that a failing check names."""

    launch: str
    seq: int
    line: int  # of telemetry.ndjson, from 1
    text: str  # the record, cut; hostile

    def without_text(self) -> DecidingRecord:
        """Return the place alone, for copies that must not hold what a phone said."""
        return DecidingRecord(self.launch, self.seq, self.line, "")


class _Place(msgspec.Struct, frozen=True, gc=False):
    launch: str
    seq: int


_DECODER: Final = msgspec.json.Decoder(_Place)


def deciding_records(
    lines: Iterable[bytes], checks: Sequence[CheckDocument]
) -> tuple[DecidingRecord, ...]:
    """Return the records that checks name, each once, in the order of the file.

    Args:
        lines: Raw telemetry; read only as far as there is something to find.
        checks: Those whose records are wanted.
    """
    wanted = {(check.launch, check.seq) for check in checks if check.seq is not None}
    needles = {f'"seq":{seq},'.encode() for _, seq in wanted}
    found: list[DecidingRecord] = []
    if not wanted:
        return ()
    for number, line in enumerate(lines, start=1):
        # Decoding every line would cost as much as judging them did.
        if not any(needle in line for needle in needles):
            continue
        place = _place(line)
        if place in wanted:
            wanted.discard(place)
            found.append(DecidingRecord(*place, number, _cut(line)))
            if not wanted:
                break
    return tuple(found)


def _place(line: bytes) -> tuple[str, int]:
    try:
        decoded = _DECODER.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return "", 0  # no record has this place
    return decoded.launch, decoded.seq


def _cut(line: bytes) -> str:
    text = line.decode(errors="replace").strip()
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
