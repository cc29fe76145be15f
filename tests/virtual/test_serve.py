"""A farm as a process: its ready line, its ends, and what it leaves behind."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest
from pymobiledevice3.services.dvt.instruments.dvt_provider import DvtProvider
from pymobiledevice3.services.dvt.instruments.process_control import ProcessControl
from pymobiledevice3.services.installation_proxy import InstallationProxyService
from pymobiledevice3.tunneld.api import get_tunneld_device_by_udid

from orchestrator.virtual.__main__ import main
from orchestrator.virtual.serve import FarmDescription, ServeOptions, serve
from tests.virtual.apps import BUNDLE_ID, pack
from tests.virtual.child import END_LIMIT_S, REPOSITORY, child_farm
from tests.virtual.waiting import until

if TYPE_CHECKING:
    from orchestrator.virtual.farm import Farm

LIMIT_S = 3.0  # for the ready line and for the end: what is promised to who serves phones


@pytest.fixture
def temporary(tmp_path: Path) -> Path:
    """A temporary folder that nothing else uses."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    return folder


def open_places(pid: int) -> list[Path]:
    """Everything below a farm's folder of sockets."""
    return sorted(path for folder in sockets(pid) for path in folder.rglob("*"))


def sockets(pid: int) -> list[Path]:
    return list(Path("/tmp").glob(f"vp-{pid}-*"))


def test_the_ready_line_is_one_line_of_json_in_time(keys: Path) -> None:
    started_s = time.monotonic()
    with child_farm("--phones", "3", "--models", "iPhone 14,iPhone 16") as (_, farm):
        elapsed_s = time.monotonic() - started_s
        models = [phone["model"] for phone in farm["phones"]]
        addresses = [farm["usbmux"], farm["tunneld"]]
    assert elapsed_s < LIMIT_S
    assert models == ["iPhone 14", "iPhone 16", "iPhone 14"]
    assert farm["phones"][1].keys() == {"udid", "name", "model", "product_type", "os"}
    assert all(address.startswith("127.0.0.1:") for address in addresses)


def test_each_phone_can_be_named_with_its_ios() -> None:
    arguments = ("--phone", "iPhone 16=18.4", "--phone", "iPhone 14=17.4")
    with child_farm(*arguments) as (_, farm):
        phones = [(phone["model"], phone["os"]) for phone in farm["phones"]]
    assert phones == [("iPhone 16", "18.4"), ("iPhone 14", "17.4")]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_and_nothing_is_left(number: signal.Signals, temporary: Path) -> None:
    with child_farm("--phones", "2", temporary=temporary) as (process, farm):
        assert len(sockets(process.pid)) == len(list(temporary.iterdir())) == 1
        process.send_signal(number)
        assert process.wait(LIMIT_S) == 0
        with pytest.raises(OSError, match="refused"):
            connect(farm["usbmux"])
    assert sockets(process.pid) == list(temporary.iterdir()) == []


def test_what_a_killed_farm_left_is_removed_by_the_next(temporary: Path) -> None:
    with child_farm("--phones", "1", temporary=temporary) as (process, _):
        process.kill()
        process.wait(LIMIT_S)
    assert len(sockets(process.pid)) == len(list(temporary.iterdir())) == 1
    with child_farm("--phones", "1", temporary=temporary) as (other, _):
        assert sockets(process.pid) == []
        assert len(list(temporary.iterdir())) == 1
    assert sockets(other.pid) == list(temporary.iterdir()) == []


def test_the_end_of_stdin_ends_it_when_it_is_watched() -> None:
    with child_farm("--watch-stdin", "--phones", "1") as (process, _):
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(LIMIT_S) == 0


def test_plain_serving_does_not_care_about_stdin() -> None:
    with child_farm("--phones", "1") as (process, farm):
        assert process.stdin is not None
        process.stdin.close()
        connect(farm["usbmux"]).close()
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.2)


@pytest.mark.skipif(sys.platform != "linux", reason="macOS polls its parent; stdin is tested above")
def test_it_dies_with_a_parent_that_was_killed(temporary: Path) -> None:
    script = (
        "import os, subprocess, sys, time\n"
        "command = [sys.executable, '-m', 'orchestrator.virtual', '--json', '--phones', '1',"
        " '--parent', str(os.getpid())]\n"
        "child = subprocess.Popen(command, stdin=subprocess.DEVNULL)\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=REPOSITORY,
        env=os.environ | {"TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdout is not None
        lines = sorted((parent.stdout.readline() for _ in range(2)), key=len)
        farm_pid, farm = int(lines[0]), json.loads(lines[1])
        parent.kill()
    assert farm["phones"]
    wait_for_the_end(farm_pid)
    assert sockets(farm_pid) == list(temporary.iterdir()) == []


def wait_for_the_end(pid: int) -> None:
    deadline_s = time.monotonic() + END_LIMIT_S
    while time.monotonic() < deadline_s:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        if "State:\tZ" in Path(f"/proc/{pid}/status").read_text():
            return  # dead; whoever inherited it has not looked yet
        time.sleep(0.01)
    raise AssertionError(f"process {pid} lives on")


def test_a_parent_that_is_not_ours_ends_it_at_once() -> None:
    with child_farm("--phones", "1", "--parent", "1") as (process, _):
        assert process.wait(LIMIT_S) == 0


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--models", "iPhone 3G"], "iPhone 14 Pro Max"),
        (["--phones", "0"], "at least one phone"),
        (["--phone", "iPhone 14=1.0"], "18.5"),
        (["--phone", "iPhone 14"], "is not a known iPhone"),
    ],
)
def test_wrong_arguments_are_explained(
    arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert text in capsys.readouterr().err


async def test_sigterm_ends_it_in_time_with_apps_running_and_hosts_connected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with child_farm("--models", "iPhone 16") as (process, farm):
        monkeypatch.setenv("USBMUXD_SOCKET_ADDRESS", farm["usbmux"])
        udid = farm["phones"][0]["udid"]
        host, _, port = farm["tunneld"].partition(":")
        remote = await get_tunneld_device_by_udid(udid, (host, int(port)))
        assert remote is not None
        async with InstallationProxyService(remote) as proxy:
            await proxy.install_from_local(pack(tmp_path / "soak.ipa"))
        async with DvtProvider(remote) as dvt, ProcessControl(dvt) as control:
            pid = await control.launch(BUNDLE_ID)
            with connect(farm["usbmux"]):
                process.send_signal(signal.SIGTERM)
                assert await anyio.to_thread.run_sync(process.wait, LIMIT_S) == 0
        await remote.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_nothing_is_left_of_an_app_that_was_killed_under_the_farm(
    tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with child_farm("--models", "iPhone 16", temporary=temporary) as (process, farm):
        monkeypatch.setenv("USBMUXD_SOCKET_ADDRESS", farm["usbmux"])
        host, _, port = farm["tunneld"].partition(":")
        remote = await get_tunneld_device_by_udid(farm["phones"][0]["udid"], (host, int(port)))
        assert remote is not None
        async with InstallationProxyService(remote) as proxy:
            await proxy.install_from_local(pack(tmp_path / "soak.ipa"))
        before = open_places(process.pid)
        async with DvtProvider(remote) as dvt, ProcessControl(dvt) as control:
            pid = await control.launch(BUNDLE_ID)
            os.kill(pid, signal.SIGKILL)
            await anyio.to_thread.run_sync(wait_for_the_end, pid)
            await until(lambda: not Path(f"/proc/{pid}").exists())  # the farm has looked
        await remote.close()
        assert open_places(process.pid) == before
    assert not sockets(process.pid)
    assert not os.listdir(temporary)


def test_a_hundred_phones_fit_into_the_usual_limit_of_open_files() -> None:
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, limit[1]))
    try:
        with child_farm("--phones", "100") as (_, farm):
            assert len({phone["udid"] for phone in farm["phones"]}) == 100
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limit)


def test_a_taken_port_is_an_error_and_nothing_is_left() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        command = [sys.executable, "-m", "orchestrator.virtual", "--port", port]
        with subprocess.Popen(command, cwd=REPOSITORY, stderr=subprocess.PIPE, text=True) as child:
            _, text = child.communicate(timeout=10)
    assert child.returncode == 2
    assert "in use" in text
    assert len(text.splitlines()) == 1
    assert sockets(child.pid) == []


async def test_the_state_of_a_farm_survives_in_its_folder(state: Path) -> None:
    options = ServeOptions(phones=[("iPhone 15", "18.5")], folder=state)
    described: list[FarmDescription] = []
    for _ in range(2):
        stop = anyio.Event()

        def ready(description: FarmDescription, stop: anyio.Event = stop) -> None:
            described.append(description)
            stop.set()

        await serve(options, ready, stop)
    assert described[0].phones == described[1].phones
    assert (state / "phones" / described[0].phones[0].udid / "Media").is_dir()
    assert (state / "lockdown" / f"{described[0].phones[0].udid}.plist").exists()


async def test_a_farm_keeps_its_keys_from_others(farm: Farm, state: Path) -> None:
    for path in (state / "pki" / "keys.json", *(state / "lockdown").iterdir()):
        assert path.stat().st_mode & 0o077 == 0


def connect(address: str) -> socket.socket:
    host, _, port = address.partition(":")
    return socket.create_connection((host, int(port)), timeout=5)
