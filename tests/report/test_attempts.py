from __future__ import annotations

from msgspec import structs

from orchestrator.report.attempts import attempt_of
from orchestrator.runlog.documents import AppExit, EvidenceDocument
from tests.report.runs import EVIDENCE
from tests.verdict.telemetry_spec import BOOT_S, PID


def facts(**given: object) -> tuple[str, ...]:
    return attempt_of(structs.replace(EVIDENCE, **given)).facts


def test_an_exit_is_told_with_its_status_or_signal() -> None:
    assert f"launch 1, pid {PID}, exited after 5.0 s with status 0" in facts()
    killed = AppExit(pid=PID, at_s=BOOT_S + 7, signal=9)
    assert f"launch 1, pid {PID}, ended after 7.0 s by signal 9 (SIGKILL)" in facts(exits=[killed])
    strange = AppExit(pid=PID, at_s=BOOT_S + 7, signal=31)
    assert f"launch 1, pid {PID}, ended after 7.0 s by signal 31" in facts(exits=[strange])
    assert f"launch 1, pid {PID}, its end was not seen" in facts(exits=[])


def test_an_exit_of_an_earlier_process_of_the_pid_is_not_it() -> None:
    earlier = AppExit(pid=PID, at_s=BOOT_S - 7, exit_code=0)
    assert f"launch 1, pid {PID}, its end was not seen" in facts(exits=[earlier])


def test_what_the_host_did_and_saw_is_told() -> None:
    told = facts(alive_at_end=False, killed_by_host=True, stopped_by_host=True, rebooted=True)
    assert "seen dead when the soak was over" in told
    assert "the host killed the app: it hung, overran or did not answer" in told
    assert "the host asked the app to stop before its time" in told
    assert "the phone restarted" in told
    assert "0 diagnostic reports collected" in told


def test_the_sentence_says_how_it_ended() -> None:
    plain = EvidenceDocument(attempt=2, launches=[], exits=[], reports=[])
    assert attempt_of(plain).sentence == "attempt 2 ended"
    lost = structs.replace(plain, cause_hint="device_lost", error="the cable")
    assert attempt_of(lost).sentence == "attempt 2 ended with device_lost: the cable"
