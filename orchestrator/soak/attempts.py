"""Attempts on one phone: a lab error is tried again by policy, the product never.

Every attempt keeps its own folder; the last one is judged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import anyio
import anyio.to_thread

from orchestrator.domain.deadline import Deadline
from orchestrator.domain.errors import DeadlineExceededError, DeviceError
from orchestrator.domain.outcome import Cause, Outcome, outcome_of
from orchestrator.runlog.files import write_document
from orchestrator.runlog.merge import AttemptMerge, MergeCounts
from orchestrator.soak.gatekeeper import GateRefusedError
from orchestrator.soak.session import PhoneSession
from orchestrator.soak.session_state import SessionJournal, Stage

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.device.link import PhoneLink
    from orchestrator.runlog.layout import AttemptPaths
    from orchestrator.soak.findings import SessionFindings
    from orchestrator.soak.run_directory import RunRecorder
    from orchestrator.soak.session import SessionOrder

RETURN_POLL_S: Final = 1.0
ANSWER_LIMIT_S: Final = 5.0

# What may be otherwise the next time. A refused install or a locked phone will not be.
_PASSING: Final = frozenset({Cause.DEVICE_LOST, Cause.TELEMETRY_LOST, Cause.DEVICE_REBOOTED})

_PASSING_LAYERS: Final = frozenset({"usbmux", "tunnel"})


@dataclass(frozen=True, slots=True)
class PhoneResult:
    """What all attempts on one phone came to."""

    findings: SessionFindings  # of the last attempt
    attempts: int

    @property
    def lab_error(self) -> str | None:
        """What the lab did wrong, None where the session says something of the product."""
        cause = self.findings.cause_hint()
        if cause is None or outcome_of(cause) is not Outcome.ERROR:
            return None
        return str(self.findings.error or self.findings.stream.error or cause.value)


def is_worth_retrying(findings: SessionFindings) -> bool:
    """Return whether another attempt may go otherwise: pure."""
    error = findings.error
    if isinstance(error, GateRefusedError):
        return False
    # A usbmuxd that crashed is started again by the system, and a tunnel through it with it; a mute
    # service may speak again. A pairing that held a moment ago reads as lost when usbmuxd dies
    # while its record is read; where it is lost indeed, `_returned` waits in vain.
    passing = error is not None and (
        error.layer in _PASSING_LAYERS
        or isinstance(error, DeadlineExceededError)
        or (error.layer == "lockdown" and findings.facts is not None)
    )
    return passing or findings.cause_hint() in _PASSING


async def soak_phone(
    order: SessionOrder,
    link: PhoneLink,
    recorder: RunRecorder,
    stop: anyio.Event,
    journal: SessionJournal | None = None,
) -> PhoneResult | None:
    """Soak one phone of a run and write all that is kept of it.

    Args:
        order: What is done.
        link: The phone.
        recorder: Of the run.
        stop: Ends the session early, in order.
        journal: Lets another process go on with the session; by default nobody can.

    Returns:
        What it came to; None if another process had brought it to its end already.
    """
    journal = journal or SessionJournal()
    if journal.state.stage is Stage.DONE:
        return None
    while True:
        findings = await _attempt(order, link, recorder, stop, journal)
        number = journal.state.attempt
        again = number <= order.lab_retries and is_worth_retrying(findings)
        if stop.is_set() or not again or not await _returned(order, link, stop):
            journal.save(Stage.DONE)
            return PhoneResult(findings, number)
        recorder.event("retry", udid=order.phone.udid, attempt=number + 1, reason="lab error")
        journal.next_attempt()


async def _attempt(
    order: SessionOrder,
    link: PhoneLink,
    recorder: RunRecorder,
    stop: anyio.Event,
    journal: SessionJournal,
) -> SessionFindings:
    paths = recorder.paths.device(order.phone.directory)
    number = journal.state.attempt
    attempt = paths.attempt(number)
    findings = await PhoneSession(order, link, attempt, recorder, stop, journal).run()
    counts = await anyio.to_thread.run_sync(write_telemetry, attempt, paths.telemetry)
    write_document(paths.device, findings.device_document(order.phone))
    write_document(attempt.evidence, findings.evidence_document(number, counts))
    return findings


async def _returned(order: SessionOrder, link: PhoneLink, stop: anyio.Event) -> bool:
    """Wait for a phone to answer again; False if it does not in time, or nobody wants it to."""
    deadline = Deadline.after(order.return_grace_s)
    while not deadline.passed and not stop.is_set():
        try:
            await link.facts(deadline=Deadline.after(ANSWER_LIMIT_S))
        except DeviceError:
            with anyio.move_on_after(RETURN_POLL_S):
                await stop.wait()
        else:
            return True
    return False


def write_telemetry(attempt: AttemptPaths, target: Path) -> MergeCounts:
    """Merge what an attempt's launches left into `telemetry.ndjson`, atomically."""
    merge = AttemptMerge(attempt)
    temporary = target.with_name(f".{target.name}.tmp")
    with temporary.open("wb") as file:
        file.writelines(merge)
    temporary.replace(target)
    return merge.counts
