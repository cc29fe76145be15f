"""Attempts on one phone: a lab error is tried again by policy, the product never.

Every attempt keeps its own folder; the last one is judged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import anyio
import anyio.to_thread
import msgspec

from orchestrator.domain.deadline import Deadline
from orchestrator.domain.errors import DeadlineExceededError, DeviceError
from orchestrator.domain.outcome import Cause, Outcome, outcome_of
from orchestrator.runlog.documents import EvidenceDocument
from orchestrator.runlog.files import naming, read_document, write_document
from orchestrator.runlog.merge import AttemptMerge, MergeCounts
from orchestrator.soak.gatekeeper import GateRefusedError
from orchestrator.soak.ladder import restart, switch_power
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
    ladder = _Ladder(order, link, recorder, stop)
    while True:
        findings = await _attempt(order, link, recorder, stop, journal)
        number = journal.state.attempt
        if not is_worth_retrying(findings) or not await ladder.climb(number):
            journal.save(Stage.DONE)
            return PhoneResult(findings, number)
        recorder.event("retry", udid=order.phone.udid, attempt=number + 1, reason="lab error")
        journal.next_attempt()


@dataclass(frozen=True, slots=True)
class _Ladder:
    """What is done between two attempts, from the mildest on."""

    order: SessionOrder
    link: PhoneLink
    recorder: RunRecorder
    stop: anyio.Event

    async def climb(self, number: int) -> bool:
        """Return whether another attempt may begin after the attempt of that number."""
        if self.stop.is_set() or number > self.order.lab_retries + 1:
            return False
        there = await _returned(self.order, self.link, self.stop) or await self._powered(number)
        if number <= self.order.lab_retries:
            return there
        return there and await self._rebooted(number)

    async def _powered(self, number: int) -> bool:
        policy, phone = self.order.recovery, self.order.phone
        if not policy.hub_power_command or self.stop.is_set():
            return False
        problem = await switch_power(policy, phone)
        self._remark("hub_power", number, problem)
        return problem is None and await _returned(self.order, self.link, self.stop)

    async def _rebooted(self, number: int) -> bool:
        """Restart a phone whose retries are used up: once, and only where the lab allows it."""
        if self.stop.is_set() or not self.order.recovery.may_reboot(self.order.phone):
            return False
        problem = await restart(self.link, self.stop)
        self._remark("phone_restarted", number, problem)
        return problem is None

    def _remark(self, kind: str, number: int, problem: str | None) -> None:
        self.recorder.event(kind, udid=self.order.phone.udid, attempt=number, problem=problem)


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
    before, now = journal.state.boot_before, findings.boot_session
    if before is not None and now is not None:
        _settle_restart(paths.attempt(number - 1).evidence, before != now)
    return findings


def _settle_restart(evidence: Path, rebooted: bool) -> None:
    """Add to the evidence of an earlier attempt what the next one shows: a phone boots slowly."""
    document = read_document(evidence, EvidenceDocument)
    if document.rebooted is None:
        write_document(evidence, msgspec.structs.replace(document, rebooted=rebooted))


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
    target.parent.mkdir(parents=True, exist_ok=True)
    merge = AttemptMerge(attempt)
    temporary = target.with_name(f".{target.name}.tmp")
    with naming(target), temporary.open("wb") as file:
        file.writelines(merge)
    temporary.replace(target)
    return merge.counts
