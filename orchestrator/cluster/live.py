"""Live summaries: how far the phones of one host are, small enough to pass through the scheduler.

They are for people who watch. The records themselves come by the mirror.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import msgspec

from orchestrator.domain.errors import FleetError
from orchestrator.soak.progress import run_progress

if TYPE_CHECKING:
    from orchestrator.runlog.layout import RunPaths

TOPIC: Final = "fleet"


class LivePhone(msgspec.Struct, frozen=True):
    """One phone."""

    udid: str
    alias: str
    phase: str
    attempt: int
    tokens_total: int | None


class LiveSummary(msgspec.Struct, frozen=True):
    """The phones of one host in one run."""

    run_id: str
    host: str
    phones: tuple[LivePhone, ...]

    @classmethod
    def read(cls, paths: RunPaths, host: str) -> LiveSummary | None:
        """Read a run that goes on; None where it has not begun."""
        try:
            progress = run_progress(paths, time.time(), owner_lives=True)
        except FleetError:
            return None
        phones = tuple(
            LivePhone(phone.udid, phone.alias, phone.phase, phone.attempt, phone.tokens_total)
            for phone in progress.phones
        )
        return cls(progress.run_id, host, phones)

    @classmethod
    def of_json(cls, text: object) -> LiveSummary | None:
        """Read what another host sent; None where it is none."""
        try:
            return msgspec.json.decode(str(text), type=cls)
        except msgspec.DecodeError:
            return None

    def as_json(self) -> str:
        """Return it as text."""
        return msgspec.json.encode(self).decode()
