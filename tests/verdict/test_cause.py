"""One cause, joined from facts that contradict and complete each other."""

from __future__ import annotations

import pytest

from orchestrator.domain.outcome import Cause, Outcome
from orchestrator.evidence.classified import ClassifiedReport, ReportKind
from orchestrator.runlog.documents import AppExit
from orchestrator.verdict.cause import diagnose
from orchestrator.verdict.ending import Ending
from tests.verdict.telemetry_spec import MIB, PID

LIMIT_BYTES = 2867 * MIB


def report(kind: ReportKind, reason: str | None = None) -> ClassifiedReport:
    return ClassifiedReport(
        file="report.ips",
        kind=kind,
        ours=True,
        in_window=True,
        launch=1,
        reason=reason,
        foreground=True,
        footprint_bytes=2800 * MIB,
        pid=PID,
        at_s=1.0,
        summary="harness was ended.",
    )


def ended(*, signal: int | None = None, exit_code: int | None = None) -> AppExit:
    return AppExit(pid=PID, at_s=10.0, signal=signal, exit_code=exit_code)


def ending(**fields: object) -> Ending:
    """Return an ending of which nothing is known but that records exist."""
    blank: dict[str, object] = {
        "has_records": True,
        "bye_reason": None,
        "exit": None,
        "alive_at_end": None,
        "rebooted": False,
        "stopped_by_host": False,
        "killed_by_host": False,
        "journal_pulled": True,
        "reports": (),
        "last_footprint_bytes": 1000 * MIB,
        "limit_bytes": LIMIT_BYTES,
        "foreground": True,
        "thermal": "nominal",
        "last_breadcrumb": None,
        "cause_hint": None,
        "error": None,
        "run_finished": True,
        "interrupted_by": None,
    }
    return Ending(**{**blank, **fields})  # type: ignore[arg-type]


KILLED = ended(signal=9)
NEAR = 2800 * MIB

CASES: list[tuple[str, dict[str, object], Cause]] = [
    (
        "bye and a clean exit",
        {"bye_reason": "completed", "exit": ended(exit_code=0)},
        Cause.COMPLETED,
    ),
    ("bye and nobody saw the end", {"bye_reason": "completed"}, Cause.COMPLETED),
    (
        "killed with a per-process report",
        {"exit": KILLED, "reports": (report("jetsam", "per-process-limit"),)},
        Cause.JETSAM_PER_PROCESS_LIMIT,
    ),
    (
        "killed with a system report",
        {"exit": KILLED, "reports": (report("jetsam", "vm-pageshortage"),)},
        Cause.JETSAM_SYSTEM_PRESSURE,
    ),
    (
        "a jetsam report that killed another app",
        {"exit": ended(exit_code=0), "bye_reason": "completed", "reports": (report("jetsam"),)},
        Cause.COMPLETED,
    ),
    (
        "killed near the limit, no report",
        {"exit": KILLED, "last_footprint_bytes": NEAR},
        Cause.KILLED_UNCONFIRMED,
    ),
    (
        "killed near the limit, then the cable",
        {"exit": KILLED, "last_footprint_bytes": NEAR, "cause_hint": "telemetry_lost"},
        Cause.KILLED_UNCONFIRMED,
    ),
    ("killed far below the limit", {"exit": KILLED}, Cause.UNEXPLAINED_EXIT),
    (
        "killed while the phone was too hot",
        {"exit": KILLED, "thermal": "critical"},
        Cause.THERMAL_KILL,
    ),
    ("killed in the background", {"exit": KILLED, "foreground": False}, Cause.FOREGROUND_LOST),
    ("killed, limit unknown", {"exit": KILLED, "limit_bytes": None}, Cause.UNEXPLAINED_EXIT),
    ("crash report", {"exit": ended(signal=5), "reports": (report("crash"),)}, Cause.CRASH),
    ("crash signal without a report", {"exit": ended(signal=11)}, Cause.CRASH),
    ("watchdog report", {"exit": KILLED, "reports": (report("watchdog"),)}, Cause.WATCHDOG),
    (
        "resource report is no death",
        {"bye_reason": "completed", "reports": (report("exc_resource"),)},
        Cause.COMPLETED,
    ),
    ("panic", {"reports": (report("panic"),)}, Cause.DEVICE_REBOOTED),
    (
        "reboot kills every app",
        {"exit": KILLED, "last_footprint_bytes": NEAR, "rebooted": True},
        Cause.DEVICE_REBOOTED,
    ),
    ("unknown signal", {"exit": ended(signal=1)}, Cause.UNEXPLAINED_EXIT),
    ("exit 0 without a bye", {"exit": ended(exit_code=0)}, Cause.EARLY_EXIT),
    ("exit 3 without a bye", {"exit": ended(exit_code=3)}, Cause.UNEXPLAINED_EXIT),
    ("exit with an unknown code", {"exit": ended()}, Cause.UNEXPLAINED_EXIT),
    ("bye for a fault", {"bye_reason": "fault"}, Cause.EARLY_EXIT),
    ("bye as stopped that nobody asked for", {"bye_reason": "stopped"}, Cause.EARLY_EXIT),
    (
        "bye as stopped by the host",
        {"bye_reason": "stopped", "stopped_by_host": True},
        Cause.USER_ABORTED,
    ),
    ("alive and silent", {"alive_at_end": True}, Cause.HANG),
    (
        "alive, journal out of reach",
        {"alive_at_end": True, "journal_pulled": False},
        Cause.TELEMETRY_LOST,
    ),
    (
        "gone near the limit, exit unseen",
        {"alive_at_end": False, "last_footprint_bytes": NEAR},
        Cause.KILLED_UNCONFIRMED,
    ),
    ("nothing known", {}, Cause.TELEMETRY_LOST),
    ("the cable was pulled", {"cause_hint": "device_lost"}, Cause.DEVICE_LOST),
    (
        "the cable was pulled after a jetsam",
        {"cause_hint": "device_lost", "reports": (report("jetsam", "per-process-limit"),)},
        Cause.JETSAM_PER_PROCESS_LIMIT,
    ),
    ("the session saw a stall", {"cause_hint": "hang", "stopped_by_host": True}, Cause.HANG),
    ("a hint nobody knows", {"cause_hint": "gremlins", "bye_reason": "completed"}, Cause.COMPLETED),
    (
        "Ctrl-C in the middle",
        {"interrupted_by": "SIGINT", "bye_reason": "stopped", "stopped_by_host": True},
        Cause.USER_ABORTED,
    ),
    (
        "Ctrl-C after this phone was done",
        {"interrupted_by": "SIGINT", "bye_reason": "completed"},
        Cause.COMPLETED,
    ),
    (
        "the orchestrator was killed",
        {"run_finished": False, "bye_reason": "completed"},
        Cause.USER_ABORTED,
    ),
]


@pytest.mark.parametrize(
    ("fields", "cause"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_cause_of(fields: dict[str, object], cause: Cause) -> None:
    found = diagnose(ending(**fields))
    assert found.cause is cause
    assert found.sentence.endswith(".")


def test_the_sentence_gives_the_footprint_and_the_limit() -> None:
    found = diagnose(ending(exit=KILLED, last_footprint_bytes=NEAR))
    assert "2800 MiB, 98% of the limit of 2867 MiB" in found.sentence


@pytest.mark.parametrize(
    ("footprint_bytes", "outcome"), [(2500 * MIB, Outcome.FAIL), (1000 * MIB, Outcome.ERROR)]
)
def test_system_pressure_blames_the_app_by_its_footprint(
    footprint_bytes: int, outcome: Outcome
) -> None:
    facts = ending(
        reports=(report("jetsam", "vm-pageshortage"),), last_footprint_bytes=footprint_bytes
    )
    assert diagnose(facts).outcome(facts) is outcome
