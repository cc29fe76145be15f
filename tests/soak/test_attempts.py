"""Lab errors are tried again by policy, the product never; every attempt stays visible."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import anyio
import pytest

from orchestrator.domain.errors import DeadlineExceededError, DeviceError
from orchestrator.domain.outcome import Cause
from orchestrator.runlog.documents import EvidenceDocument
from orchestrator.runlog.events import read_events
from orchestrator.runlog.files import read_document
from orchestrator.soak.attempts import is_worth_retrying, soak_phone
from orchestrator.soak.findings import SessionFindings
from orchestrator.soak.gatekeeper import GateRefusedError
from orchestrator.soak.session_state import SessionJournal
from orchestrator.soak.streaming import StreamResult
from orchestrator.soak.watch import Ending
from tests.device.scripted import HEALTHY
from tests.soak.scripted_app import ScriptedApp, record
from tests.soak.test_session import LINES, Bench, bench

if TYPE_CHECKING:
    from orchestrator.domain.deadline import Deadline
    from orchestrator.soak.attempts import PhoneResult

__all__ = ["bench"]

UNPAIRED = DeviceError("b", "lockdown", "install", "not paired", cause=Cause.NOT_READY)


async def soaked(bench: Bench, retries: int) -> PhoneResult:
    order = replace(bench.order, lab_retries=retries)
    with anyio.fail_after(20):
        result = await soak_phone(order, bench.link, bench.recorder, bench.stop, SessionJournal())
    assert result is not None
    return result


def fail_once(bench: Bench, monkeypatch: pytest.MonkeyPatch, step: str, cause: Cause) -> None:
    script, failure = bench.link.script, DeviceError("b", "dvt", step, "broken", cause=cause)
    original = script.step

    async def failing(name: str) -> None:
        await original(name)
        if name == step and script.calls.count(step) == 1:
            raise failure

    monkeypatch.setattr(script, "step", failing)


async def test_a_lost_phone_that_returns_gets_a_second_attempt(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    ScriptedApp(bench.link, LINES)
    fail_once(bench, monkeypatch, "install", Cause.DEVICE_LOST)
    result = await soaked(bench, 1)
    assert (result.attempts, result.lab_error) == (2, None)
    paths = bench.recorder.paths.device(bench.order.phone.directory)
    assert [attempt.root.name for attempt in paths.attempts()] == ["1", "2"]
    assert all(attempt.evidence.exists() for attempt in paths.attempts())
    assert paths.telemetry.read_bytes() == b"".join([*LINES, record(4, "bye")])
    retries = [e for e in read_events(bench.recorder.paths.events) if e.kind == "retry"]
    assert [event.attempt for event in retries] == [2]


async def test_a_restart_that_only_the_next_attempt_shows_stands_in_the_evidence_of_the_first(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    boots = iter(["boot-1", None, "boot-2"])  # launch, end of the first attempt, next launch

    async def boot_session(*, deadline: Deadline) -> str | None:
        return next(boots)

    async def stay_open() -> None:
        pass

    monkeypatch.setattr(bench.link.session, "boot_session", boot_session)
    ScriptedApp(bench.link, LINES)
    fail_once(bench, monkeypatch, "launch", Cause.DEVICE_LOST)
    with monkeypatch.context() as patch:
        patch.setattr(bench.link.session, "aclose", stay_open)
        assert (await soaked(bench, 1)).attempts == 2
    paths = bench.recorder.paths.device(bench.order.phone.directory)
    found = [read_document(attempt.evidence, EvidenceDocument) for attempt in paths.attempts()]
    assert [evidence.rebooted for evidence in found] == [True, None]


async def test_attempts_are_limited_by_the_policy(bench: Bench) -> None:
    lost = DeviceError("b", "afc", "install", "gone", cause=Cause.DEVICE_LOST)
    bench.link.script.failures["install"] = lost
    result = await soaked(bench, 2)
    assert result.attempts == 3
    assert result.lab_error == str(lost)


async def test_without_retries_the_first_attempt_stands(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    ScriptedApp(bench.link, LINES)
    fail_once(bench, monkeypatch, "install", Cause.DEVICE_LOST)
    assert (await soaked(bench, 0)).attempts == 1


async def test_a_crash_is_never_tried_again(bench: Bench) -> None:
    ScriptedApp(bench.link, LINES, then="crash")
    result = await soaked(bench, 3)
    assert (result.attempts, result.lab_error) == (1, None)


@pytest.mark.parametrize(
    ("findings", "again"),
    [
        (SessionFindings(), False),
        (SessionFindings(stream=StreamResult(ending=Ending.LOST)), True),
        (SessionFindings(stream=StreamResult(ending=Ending.UNREACHABLE)), True),
        (SessionFindings(stream=StreamResult(ending=Ending.STALLED)), False),
        (
            SessionFindings(
                error=DeviceError("b", "install", "install", "-", cause=Cause.INSTALL_FAILED)
            ),
            False,
        ),
        (
            SessionFindings(
                error=DeviceError("b", "usbmux", "install", "-", cause=Cause.NOT_READY)
            ),
            True,
        ),
        (SessionFindings(error=UNPAIRED), False),
        (SessionFindings(facts=HEALTHY, error=UNPAIRED), True),
        (SessionFindings(error=DeadlineExceededError("b", "afc", "install", 5.0)), True),
        (
            SessionFindings(error=GateRefusedError("b", "gate", "-", "-", cause=Cause.DEVICE_LOST)),
            False,
        ),
    ],
)
def test_what_may_go_otherwise_is_tried_again(findings: SessionFindings, again: bool) -> None:
    assert is_worth_retrying(findings) is again
