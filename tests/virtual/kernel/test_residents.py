"""The processes of iOS itself."""

from __future__ import annotations

import pytest

from orchestrator.virtual.kernel.residents import SystemProcesses

BOOTED_S = 1_770_000_000.0
SAFARI = ("com.apple.mobilesafari", "MobileSafari", "/Applications/MobileSafari.app/MobileSafari")


@pytest.fixture
def system() -> SystemProcesses:
    return SystemProcesses(BOOTED_S, lambda _: False)


def pid_of(system: SystemProcesses, name: str) -> int:
    return next(process.pid for process in system.running() if process.name == name)


def test_daemons_run_since_the_boot_each_under_a_pid_of_its_own(system: SystemProcesses) -> None:
    running = system.running()
    pids = [process.pid for process in running]
    assert len(set(pids)) == len(pids)
    assert pids == sorted(pids)
    assert {process.started_s for process in running} == {BOOTED_S}
    assert system.find(1) is not None


def test_a_daemon_comes_back_under_a_new_pid_and_later(system: SystemProcesses) -> None:
    old = pid_of(system, "SpringBoard")
    system.end(old)
    new = pid_of(system, "SpringBoard")
    assert new != old
    assert system.find(old) is None
    again = system.find(new)
    assert again is not None
    assert again.started_s > BOOTED_S


def test_an_idle_daemon_stays_away(system: SystemProcesses) -> None:
    system.end(pid_of(system, "assetsd"))
    assert "assetsd" not in [process.name for process in system.running()]


def test_an_app_of_apple_runs_once_and_ends(system: SystemProcesses) -> None:
    pid = system.launch(*SAFARI)
    assert system.launch(*SAFARI) == pid
    system.end(pid)
    assert system.find(pid) is None
    assert system.launch(*SAFARI) != pid


def test_a_pid_of_the_host_is_never_given_away() -> None:
    taken = {34, 301, 302}
    system = SystemProcesses(BOOTED_S, taken.__contains__)
    assert system.find(34) is None
    assert system.launch(*SAFARI) == 303
