from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from orchestrator.device.facts import ClockReading, VirtualFacts
from orchestrator.domain.errors import DeviceError
from orchestrator.runlog.documents import AppExit, LaunchWindow
from orchestrator.soak import collect
from orchestrator.soak.collect import ReportCollector, report_wait_s
from orchestrator.soak.findings import SessionFindings
from orchestrator.soak.streaming import StreamResult
from orchestrator.soak.watch import Ending
from tests.device.scripted import HEALTHY, ScriptedLink
from tests.evidence.factory import APP, NOON_S, jetsam, process, report

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from orchestrator.domain.deadline import Deadline

LAUNCH = LaunchWindow(number=1, pid=501, launch=None, started_s=NOON_S - 60, ended_s=NOON_S)
OURS = jetsam(process(pid=501), incident="OURS")
DAEMONS = jetsam(process("assetsd", pid=88, uuid=None))


class LatePhone(ScriptedLink):
    """Its report appears between the second look and the third, if it is late."""

    late: bytes | None = None

    async def flush_reports(self, *, deadline: Deadline) -> None:
        if self.late and self.script.calls.count("pull_reports") == 2:
            self.reports["/late.ips"] = self.late
        await super().flush_reports(deadline=deadline)


@pytest.fixture
async def link() -> AsyncIterator[LatePhone]:
    phone = LatePhone()
    yield phone
    await phone.session.aclose()


async def waited(collector: ReportCollector, *, wait_s: float) -> list[str]:
    await collector.pull_until_explained(APP, [LAUNCH], (0.0, 0.0), wait_s=wait_s)
    return [file.file for file in collector.files]


async def test_what_the_phone_held_before_is_listed_and_never_pulled(
    link: LatePhone, tmp_path: Path
) -> None:
    link.reports = {"/yesterday.ips": OURS}
    collector = ReportCollector(link, tmp_path)
    await collector.remember_present()
    link.reports["/today.ips"] = OURS
    await collector.pull_new()
    assert [file.device_path for file in collector.files] == ["/today.ips"]
    assert link.script.calls == ["flush_reports", "list_reports", "flush_reports", "pull_reports"]


async def test_the_wait_ends_with_the_report_of_this_apps_death(
    link: LatePhone, tmp_path: Path
) -> None:
    link.reports = {"/a.ips": OURS}
    assert await waited(ReportCollector(link, tmp_path), wait_s=60.0) == ["a.ips"]
    assert link.script.calls.count("pull_reports") == 1


async def test_a_daemons_report_does_not_end_the_wait_for_ours(
    link: LatePhone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collect, "POLL_S", 0.001)
    link.reports, link.late = {"/daemon.ips": DAEMONS}, OURS
    files = await waited(ReportCollector(link, tmp_path), wait_s=60.0)
    assert files == ["daemon.ips", "late.ips"]


async def test_without_a_report_the_wait_ends_with_its_time(
    link: LatePhone, tmp_path: Path
) -> None:
    assert await waited(ReportCollector(link, tmp_path), wait_s=0.0) == []
    assert link.script.calls.count("pull_reports") == 1


async def test_reports_of_other_devices_are_kept_counted_and_explain_nothing(
    link: LatePhone, tmp_path: Path
) -> None:
    watch = report("309", {"pid": 501, "modelCode": "Watch7,3"}, name=APP)
    link.reports = {"/w.ips": watch}
    collector = ReportCollector(link, tmp_path)
    assert await waited(collector, wait_s=0.0) == ["w.ips"]
    assert collector.ignored == 1


async def test_what_was_pulled_before_the_cable_broke_is_kept(
    link: LatePhone, tmp_path: Path
) -> None:
    link.reports = {"/daemon.ips": DAEMONS}
    collector = ReportCollector(link, tmp_path)
    await collector.pull_new()
    link.script.failures["flush_reports"] = DeviceError("bench-01", "afc", "collect", "unplugged")
    with pytest.raises(DeviceError, match="unplugged"):
        await collector.pull_new()
    assert [file.file for file in collector.files] == ["daemon.ips"]


def test_a_virtual_phone_states_its_own_delay() -> None:
    real = replace(HEALTHY, virtual=None)
    assert report_wait_s(real, 120.0) == 120.0
    assert report_wait_s(None, 120.0) == 120.0
    assert report_wait_s(replace(HEALTHY, virtual=VirtualFacts(32, 9.0)), 120.0) == 11.0
    assert report_wait_s(HEALTHY, 120.0) == 5.0


def findings(ending: Ending, *exits: AppExit, alive: bool | None = None) -> SessionFindings:
    stream = StreamResult(ending=ending, exits=list(exits))
    return SessionFindings(stream=stream, alive_at_end=alive)


def test_a_death_is_a_bad_exit_or_a_process_that_is_gone_without_goodbye() -> None:
    clean, killed = AppExit(pid=1, at_s=0.0, exit_code=0), AppExit(pid=1, at_s=0.0, signal=9)
    assert findings(Ending.EXITED, killed).died
    assert findings(Ending.UNREACHABLE, alive=False).died
    assert not findings(Ending.UNREACHABLE, alive=True).died
    assert not findings(Ending.COMPLETED, clean).died
    assert not findings(Ending.COMPLETED, alive=False).died


def test_the_clock_is_known_at_both_ends() -> None:
    found = SessionFindings(facts=replace(HEALTHY, clock=ClockReading(420.0, 0.01)))
    assert found.clock_offsets_s == (420.0, 420.0)
    found.clock_at_end = ClockReading(0.5, 0.01)
    assert found.clock_offsets_s == (420.0, 0.5)
    assert SessionFindings().clock_offsets_s == (0.0, 0.0)
