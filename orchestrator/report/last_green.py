"""What changed since the last run in which every phone passed.

A run directory does not know its forerunners: whoever composes a report remembers the last green
run in `report/last_green.json`, a derived file like all of that folder. Without it the page says
that no earlier green run is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from orchestrator.domain.errors import RunDirectoryError
from orchestrator.runlog.documents import Document
from orchestrator.runlog.files import read_document, write_document

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import msgspec

    from orchestrator.report.stamps import PhoneStamps

_NAME: Final = "last_green.json"


class GreenPhone(Document, frozen=True, kw_only=True):
    """What one phone of that run ran; the names are those of `PhoneStamps`."""

    udid: str
    model: str
    os_build: str
    model_digest: str
    app_build: str
    app_sha256: str
    app_commit: str


class GreenRun(Document, frozen=True, kw_only=True):
    """The last green run before this one."""

    run_id: str
    started_s: float
    phones: list[GreenPhone]


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that differs from the last green run."""

    what: str
    then: str
    now: str


_COMPARED: Final = (
    ("app_commit", "harness commit"),
    ("app_build", "harness build"),
    ("app_sha256", "app package"),
    ("model_digest", "model digest"),
    ("os_build", "iOS build"),
)
_SHOWN_DIGITS: Final = 12  # of a commit or a digest


def remember(run: Path, green: GreenRun) -> None:
    """Write the last green run into a run's derived folder."""
    write_document(_path(run), green)


def recall(run: Path) -> GreenRun | None:
    """Return the last green run, None where nobody remembered one."""
    try:
        return read_document(_path(run), GreenRun)
    except RunDirectoryError:
        return None


def _path(run: Path) -> Path:
    return run / "report" / _NAME


def changes(green: GreenRun, udid: str, model: str, now: PhoneStamps) -> list[Change]:
    """Return what a phone runs otherwise; where it was not there, its model stands for it.

    A stamp that either side does not know is no change.
    """
    then = _forerunner(green.phones, udid, model)
    if then is None:
        return [Change("phone", "neither it nor its model was soaked", "soaked")]
    return [
        Change(what, _cut(getattr(then, name)), _cut(getattr(now, name)))
        for name, what in _COMPARED
        if _differs(then, now, name)
    ]


def _forerunner(phones: Sequence[GreenPhone], udid: str, model: str) -> GreenPhone | None:
    same = next((phone for phone in phones if phone.udid == udid), None)
    return same or next((phone for phone in phones if phone.model == model), None)


def _differs(then: msgspec.Struct, now: PhoneStamps, name: str) -> bool:
    before, after = getattr(then, name), getattr(now, name)
    return before != after and not {before, after} & {"unknown", "not said", ""}


def _cut(text: str) -> str:
    hexadecimal = len(text) > _SHOWN_DIGITS and set(text) <= set("0123456789abcdef")
    return text[:_SHOWN_DIGITS] if hexadecimal else text
