"""Real child processes under the kernel of a virtual phone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest

from orchestrator.virtual.kernel import (
    BadSignalError,
    InstalledApp,
    Kernel,
    LaunchRefusedError,
    LowPowerChange,
    MemoryWarning,
    NoSuchProcessError,
)
from tests.virtual.kernel.conftest import WAIT_LIMIT_S, Phone, Watcher, install
from tests.virtual.kernel.programs import ECHO, LISTEN

if TYPE_CHECKING:
    from collections.abc import Callable

    from orchestrator.virtual.kernel import KernelFacts


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_an_app_runs_in_its_container_with_the_environment_of_the_protocol(
    phone: Phone,
) -> None:
    source = "import os, json; print(json.dumps([os.getcwd(), dict(os.environ)]))"
    _, watcher = await phone.run(source, {"FLEET_TOKEN": "t", "FLEET_PORT": "7"})
    assert await watcher.ended() == (0, None)
    directory, environment = json.loads(watcher.lines[0])
    assert directory == environment["HOME"] == str(phone.folder / "SoakHarness.container")
    assert environment["FLEET_SOCKET"] == str(phone.folder / "7.sock")
    assert environment["FLEET_TOKEN"] == "t"
    assert environment["FLEET_PARENT_PID"] == str(os.getpid())
    assert environment["FLEET_MEMORY_SCALE"] == "32"


async def test_an_app_does_not_get_the_interrupt_of_the_hosts_terminal(phone: Phone) -> None:
    _, watcher = await phone.run("import os; print(os.getsid(0) == os.getpid())")
    await watcher.ended()
    assert watcher.lines == ["True"]


async def test_output_is_delivered_and_logged_line_by_line(phone: Phone) -> None:
    source = "import os; os.write(1, b'out\\n'); os.write(2, b'err\\xff\\nlast')"
    pid, watcher = await phone.run(source)
    await watcher.ended()
    assert watcher.lines == ["out", "err\ufffd", "last"]
    assert phone.log_of("SoakHarness") == watcher.lines
    assert {line.pid for line in phone.log} == {pid}


async def test_conditions_are_numbered_lines_on_stdin(phone: Phone) -> None:
    pid, watcher = await phone.run(ECHO)
    phone.kernel.send_condition(pid, MemoryWarning())
    phone.kernel.send_condition(pid, LowPowerChange(value=True))
    await watcher.line('told {"n":1,"event":"memory_warning"}')
    await watcher.line('told {"n":2,"event":"low_power","value":true}')


async def test_a_condition_that_the_app_cannot_take_is_logged(phone: Phone) -> None:
    pid, watcher = await phone.run("import os, time; os.close(0); print('ready'); time.sleep(99)")
    del watcher
    with anyio.fail_after(WAIT_LIMIT_S):
        while not phone.log_of("kernel"):
            phone.kernel.send_condition(pid, MemoryWarning())
            await anyio.sleep(0.01)
    assert "one line is lost" in phone.log_of("kernel")[0]


@pytest.mark.parametrize("code", [0, 1, 18])
async def test_the_exit_code_is_told_and_leaves_no_report(phone: Phone, code: int) -> None:
    pid, watcher = await phone.run(f"raise SystemExit({code})")
    assert await watcher.ended() == (code, None)
    assert phone.reports() == []
    assert phone.kernel.processes() == []
    assert phone.kernel.footprint_bytes(pid) is None
    assert phone.kernel.cpu_time_s(pid) is None


async def test_a_kill_by_somebody_else_is_told_and_leaves_no_report(phone: Phone) -> None:
    pid, watcher = await phone.run(ECHO)
    phone.kernel.send_signal(pid, signal.SIGKILL)
    assert await watcher.ended() == (None, signal.SIGKILL)
    assert phone.reports() == []
    assert phone.events == []


async def test_a_crash_leaves_a_report_that_the_log_announces(phone: Phone) -> None:
    pid, watcher = await phone.run("import os; os.abort()")
    assert await watcher.ended() == (None, signal.SIGABRT)
    (report,) = phone.reports()
    assert json.loads(report.read_text().split("\n", 1)[1])["pid"] == pid
    (text,) = phone.log_of("osanalyticshelper")
    assert text.startswith("Saved type '309(com.example.soakharness)'")
    assert text.endswith(f"/{report.name}")


async def test_a_listener_that_comes_after_the_end_still_gets_output_and_end(phone: Phone) -> None:
    pid, first = await phone.run("raise SystemExit(3)")
    await first.ended()
    late = Watcher()
    phone.kernel.listen(pid, late)
    assert late.end == (3, None)


async def test_a_listener_that_left_hears_nothing_more(phone: Phone) -> None:
    pid, watcher = await phone.run(ECHO)
    await watcher.line("ready")
    stays = Watcher()
    phone.kernel.listen(pid, stays)
    phone.kernel.unlisten(pid, watcher)
    phone.kernel.send_signal(pid, signal.SIGKILL)
    await stays.ended()
    assert watcher.end is None


async def test_an_unknown_pid_and_an_unknown_signal_are_refused(phone: Phone) -> None:
    pid, _ = await phone.run(ECHO)
    with pytest.raises(BadSignalError, match="4711"):
        phone.kernel.send_signal(pid, 4711)
    kernel = phone.kernel
    calls: list[Callable[[], None]] = [
        lambda: kernel.send_signal(1, signal.SIGKILL),
        lambda: kernel.send_condition(1, MemoryWarning()),
        lambda: kernel.listen(1, Watcher()),
        lambda: kernel.reclaim(1),
    ]
    for call in calls:
        with pytest.raises(NoSuchProcessError, match="No such process: 1"):
            call()
    phone.kernel.unlisten(1, Watcher())


async def test_what_cannot_be_executed_is_refused_with_the_reason(phone: Phone) -> None:
    missing = InstalledApp("com.example.a", "A", Path("/nowhere"), phone.folder, "1", "1")
    with pytest.raises(LaunchRefusedError, match=r"com\.example\.a.*/nowhere.*No such file"):
        await phone.kernel.launch(missing, {}, [], kill_existing=False)
    app = install(phone.folder, ECHO)
    with pytest.raises(LaunchRefusedError, match="null byte"):
        await phone.kernel.launch(app, {"A": "b\0c"}, [], kill_existing=False)
    assert phone.kernel.processes() == []


async def test_a_running_app_is_found_again_or_replaced(phone: Phone) -> None:
    pid, watcher = await phone.run(ECHO)
    app = phone.kernel.processes()[0]
    installed = InstalledApp(
        app.bundle_id, app.name, app.executable, phone.folder / "SoakHarness.container", "1", "1"
    )
    assert await phone.kernel.launch(installed, {}, [], kill_existing=False) == pid
    fresh = await phone.kernel.launch(installed, {}, [], kill_existing=True)
    assert fresh != pid
    assert await watcher.ended() == (None, signal.SIGKILL)
    assert [process.pid for process in phone.kernel.processes()] == [fresh]


async def test_a_socket_is_found_by_its_port_and_goes_with_the_app(phone: Phone) -> None:
    (phone.folder / "28450.sock").write_text("left by a phone that was killed")
    pid, watcher = await phone.run(LISTEN)
    await watcher.line("ready")
    assert phone.kernel.app_socket(28450) == phone.folder / "28450.sock"
    assert phone.kernel.app_socket(28451) is None
    phone.kernel.send_signal(pid, signal.SIGKILL)
    await watcher.ended()
    assert phone.kernel.app_socket(28450) is None
    assert not (phone.folder / "28450.sock").exists()


async def test_two_apps_cannot_have_one_port(phone: Phone) -> None:
    pid, _ = await phone.run(ECHO)
    with pytest.raises(LaunchRefusedError, match=f"port 28450 belongs to SoakHarness, pid {pid}"):
        await phone.run(ECHO, name="Other")


async def test_an_app_that_exits_before_the_kill_reaches_it_has_exited(phone: Phone) -> None:
    pid, watcher = await phone.run("raise SystemExit(3)")
    while is_alive(pid):
        time.sleep(0.001)  # noqa: ASYNC251 - the event loop must not hear of the end yet
    phone.kernel.reclaim(pid)
    assert await watcher.ended() == (3, None)
    assert phone.reports() == []
    assert phone.events == []


async def test_shut_down_leaves_nobody_not_even_a_suspended_app(facts: KernelFacts) -> None:
    kernel = Kernel(facts, log=lambda line: None)
    folder = facts.port_folder
    pids = [
        await kernel.launch(
            install(folder, ECHO, f"App{port}"), {"FLEET_PORT": str(port)}, [], kill_existing=False
        )
        for port in (1, 2, 3)
    ]
    kernel.send_signal(pids[0], signal.SIGSTOP)
    await kernel.shut_down()
    assert not any(is_alive(pid) for pid in pids)
    assert kernel.processes() == []
    with pytest.raises(LaunchRefusedError, match="the phone is shut down"):
        await kernel.launch(install(folder, ECHO, "Late"), {}, [], kill_existing=False)
    await kernel.shut_down()


async def test_a_launch_that_meets_the_shut_down_leaves_nobody(facts: KernelFacts) -> None:
    kernel = Kernel(facts, log=lambda line: None)
    refused: list[LaunchRefusedError] = []

    async def launch() -> None:
        try:
            await kernel.launch(install(facts.port_folder, ECHO), {}, [], kill_existing=False)
        except LaunchRefusedError as error:
            refused.append(error)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(launch)
        await anyio.lowlevel.checkpoint()
        await kernel.shut_down()
    assert kernel.processes() == []
    assert len(refused) <= 1


PARENT = """
import asyncio, dataclasses, pathlib, sys
from orchestrator.domain.iphone import by_name
from orchestrator.virtual.kernel import InstalledApp, Kernel, KernelFacts
folder = pathlib.Path(sys.argv[1])
async def main():
    facts = KernelFacts(by_name("iPhone 15"), "u", "18.5", "22F76", 32, folder, folder, False, 0.0)
    kernel = Kernel(facts, log=lambda line: None)
    box = folder / "SoakHarness.container"
    app = InstalledApp("com.example.a", "A", folder / "SoakHarness.py", box, "1", "1")
    print(await kernel.launch(app, {}, [], kill_existing=False), flush=True)
    await asyncio.sleep(99)
asyncio.run(main())
"""


def test_an_app_ends_by_the_end_of_its_stdin_when_the_phones_process_is_killed(
    folder: Path,
) -> None:
    install(folder, ECHO)  # it does not ask for PDEATHSIG: only the closed channel can end it
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(folder)], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.kill()
    end_s = time.monotonic() + WAIT_LIMIT_S
    while is_running(pid) and time.monotonic() < end_s:
        time.sleep(0.01)
    assert not is_running(pid)


def is_running(pid: int) -> bool:
    """Whether a process runs; one that nobody has reaped yet does not."""
    state = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return state.stdout.strip()[:1] not in {"", "Z"}
