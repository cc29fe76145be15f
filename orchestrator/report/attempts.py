"""The attempts of a phone: how each ended, by what the host saw. Retries are never hidden."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from orchestrator.domain.counting import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from orchestrator.runlog.documents import AppExit, EvidenceDocument, LaunchWindow

_SIGNALS: Final = {4: "SIGILL", 5: "SIGTRAP", 6: "SIGABRT", 9: "SIGKILL", 11: "SIGSEGV"}


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt; texts may hold words of the phone."""

    number: int  # from 1
    cause: str | None  # of the lab's trouble, None where the session came to its end
    error: str | None  # the sentence of that trouble
    facts: tuple[str, ...]  # what was seen of the app's processes, one phrase each

    @property
    def sentence(self) -> str:
        """How it ended."""
        end = f"ended with {self.cause}" if self.cause else "ended"
        told = f": {self.error}" if self.error else ""
        return f"attempt {self.number} {end}{told}"


def attempt_of(evidence: EvidenceDocument) -> Attempt:
    """Return one attempt from its evidence."""
    return Attempt(evidence.attempt, evidence.cause_hint, evidence.error, tuple(_facts(evidence)))


def _facts(evidence: EvidenceDocument) -> Iterator[str]:
    for launch in evidence.launches:
        yield f"launch {launch.number}, pid {launch.pid}, {_end(launch, evidence.exits)}"
    if evidence.alive_at_end is not None:
        yield f"seen {'alive' if evidence.alive_at_end else 'dead'} when the soak was over"
    if evidence.killed_by_host:
        yield "the host killed the app: it hung, overran or did not answer"
    if evidence.stopped_by_host:
        yield "the host asked the app to stop before its time"
    if evidence.rebooted is not None:
        yield f"the phone {'restarted' if evidence.rebooted else 'did not restart'}"
    yield "the journal was pulled" if evidence.journal_pulled else "the journal was not pulled"
    yield f"{counted(len(evidence.reports), 'diagnostic report')} collected"


def _end(launch: LaunchWindow, exits: Sequence[AppExit]) -> str:
    ends = [e for e in exits if e.pid == launch.pid and e.at_s >= launch.started_s]
    if not ends:
        return "its end was not seen"
    end = ends[0]
    after = f"after {end.at_s - launch.started_s:.1f} s"
    if end.signal:
        return f"ended {after} by signal {end.signal}{_named(end.signal)}"
    if end.exit_code is not None:
        return f"exited {after} with status {end.exit_code}"
    return f"gone {after}"


def _named(signal: int) -> str:
    name = _SIGNALS.get(signal)
    return f" ({name})" if name else ""
