from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from orchestrator.evidence.frames import Backtrace, Frame
from orchestrator.evidence.reports import CrashReport, JetsamReport, JetsamVictim, ReportHeader
from orchestrator.report.excerpt import MOST_FRAMES, MOST_VICTIMS, Excerpt, excerpt_of
from tests.report.results import kill_report

if TYPE_CHECKING:
    from orchestrator.evidence.reports import ParsedReport

HEADER = ReportHeader("x.ips", "298", None, None, None, None)
CRASH = CrashReport(
    header=HEADER,
    pid=501,
    exception="EXC_BREAKPOINT",
    signal="SIGTRAP",
    namespace="SIGNAL",
    code=5,
    message="Fatal error: index out of range",
    foreground=True,
    watchdog_event=None,
    thermal_state="serious",
)


def victim(name: str | None, pid: int) -> JetsamVictim:
    return JetsamVictim(name, pid, None, "per-process-limit", 10, 163_840, ("frontmost",), pid)


def jetsam(*victims: JetsamVictim) -> JetsamReport:
    return JetsamReport(HEADER, victims, len(victims), 16384, False, "kernel_task", 0)


def excerpt(report: ParsedReport) -> Excerpt:
    found = excerpt_of(report, kill_report())
    assert found is not None
    return found


def test_victims_keep_their_order_and_ours_is_marked() -> None:
    first, second = excerpt(jetsam(victim("assetsd", 7), victim("SoakHarness", 501))).victims
    assert (first.process, first.ours) == ("assetsd", False)
    assert (second.process, second.ours, second.footprint_bytes) == ("SoakHarness", True, 163_840)
    assert second.foreground


def test_many_victims_and_frames_are_cut_and_counted() -> None:
    many = excerpt(jetsam(*(victim(None, number) for number in range(MOST_VICTIMS + 3))))
    assert (len(many.victims), many.victims_left_out) == (MOST_VICTIMS, 3)
    frames = tuple(Frame("App", None, 16 * n, None) for n in range(MOST_FRAMES + 5))
    deep = excerpt(replace(CRASH, backtrace=Backtrace(frames, "arm64")))
    assert (len(deep.frames), deep.frames_left_out) == (MOST_FRAMES, 5)
    assert deep.frames[1] == "1  App  + 0x10"


def test_a_crash_tells_exception_termination_message_and_heat() -> None:
    assert excerpt(CRASH).lines == (
        "EXC_BREAKPOINT (SIGTRAP)",
        "termination: SIGNAL 0x5",
        "Fatal error: index out of range",
        "thermal state: serious",
    )


def test_a_long_message_is_cut() -> None:
    assert len(excerpt(replace(CRASH, message="x" * 1_000_000)).lines[2]) == 300


def test_a_report_about_others_has_no_excerpt() -> None:
    assert excerpt_of(CRASH, kill_report(ours=False)) is None
