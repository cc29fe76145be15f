"""Real keeper processes against virtual phones in a child process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from signal import SIGKILL, SIGSTOP
from typing import TYPE_CHECKING

import anyio
import pytest

from orchestrator.device.events import (
    AppExited,
    AppOutput,
    FootprintObserved,
    SessionEvent,
    SessionLost,
)
from orchestrator.device.keeper.broker import KeeperBroker
from orchestrator.device.keeper.place import KeeperPlace, is_held, living, place_of, read_record
from orchestrator.device.keeper.start import KeeperStarter
from orchestrator.device.pmd3.developer import boot_session_of
from orchestrator.device.pmd3.link import Pmd3Link
from orchestrator.domain.deadline import Deadline
from orchestrator.domain.errors import DeadlineExceededError, DeviceError
from orchestrator.domain.iphone import by_product_type
from orchestrator.domain.outcome import Cause
from tests.device.farm import ROOT, FarmProcess

if TYPE_CHECKING:
    from collections.abc import Iterator

    from orchestrator.device.discovery import Discovery, UsbmuxSource
    from orchestrator.device.keeper.client import KeeperClient

LIMIT_S = 20.0


def soon() -> Deadline:
    return Deadline.after(LIMIT_S)


async def until(
    session: KeeperClient, kind: type[SessionEvent], count: int = 1
) -> list[SessionEvent]:
    """Return the session's events up to the `count`th of a kind."""
    seen: list[SessionEvent] = []
    with anyio.fail_after(LIMIT_S):
        async for event in session.events():
            seen.append(event)
            if sum(isinstance(one, kind) for one in seen) == count:
                break
    return seen


def exists(pid: int) -> bool:
    """Whether a process exists and is no zombie."""
    try:
        return ") Z" not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


async def until_gone(*pids: int) -> None:
    with anyio.fail_after(LIMIT_S):
        while any(exists(pid) for pid in pids):  # noqa: ASYNC110 - another process says nothing
            await anyio.sleep(0.005)


async def until_free(place: KeeperPlace) -> None:
    """The lock goes with a killed process's last thread, a moment after its first."""
    with anyio.fail_after(LIMIT_S):
        while is_held(place):  # noqa: ASYNC110 - the kernel says nothing
            await anyio.sleep(0.005)


async def test_environment_and_arguments_reach_the_app_and_its_output_comes_back(
    link: Pmd3Link, installed: str
) -> None:
    session = await link.developer(deadline=soon())
    environment = {"TINY_WORD": "é \n x", "TINY_EXIT": "7"}
    pid = await session.launch(installed, environment, ["--a", "b c"], deadline=soon())
    events = await until(session, AppExited)
    await session.aclose()
    (output,) = [one for one in events if isinstance(one, AppOutput)]
    assert output.pid == pid
    assert json.loads(output.line.removeprefix("tiny ")) == ["é \n x", ["--a", "b c"]]
    assert events[-1] == AppExited(pid, 7, None)


async def test_a_running_app_is_seen_killed_and_seen_gone(link: Pmd3Link, installed: str) -> None:
    session = await link.developer(deadline=soon())
    pid = await session.launch(installed, {}, deadline=soon())
    assert await session.is_running(pid, deadline=soon())
    await session.kill(pid, deadline=soon())
    assert (await until(session, AppExited))[-1] == AppExited(pid, None, int(SIGKILL))
    assert not await session.is_running(pid, deadline=soon())
    await session.kill(pid, deadline=soon())  # it is gone already, which is no error
    await session.aclose()


async def test_the_kernels_footprint_and_memory_size_are_read(
    link: Pmd3Link, installed: str
) -> None:
    session = await link.developer(deadline=soon())
    pid = await session.launch(installed, {}, deadline=soon())
    await session.observe(pid, 50, deadline=soon())
    events = await until(session, FootprintObserved, 3)
    model = by_product_type(link.phone.product_type)
    assert model is not None
    assert await session.physical_memory_bytes(deadline=soon()) == model.physical_memory_bytes
    await session.aclose()
    footprints = [one for one in events if isinstance(one, FootprintObserved)]
    assert all(one.pid == pid and one.footprint_bytes > 1024**2 for one in footprints)


async def test_the_apps_port_answers_once_it_listens(link: Pmd3Link, installed: str) -> None:
    session = await link.developer(deadline=soon())
    environment = {"TINY_ECHO": "1", "TINY_EXIT": "0", "FLEET_PORT": "28450"}
    await session.launch(installed, environment, deadline=soon())
    await until(session, AppOutput, 2)
    async with await link.connect(28450, deadline=soon()) as stream:
        await stream.send(b"hello")
        assert await stream.receive() == b"HELLO"
    await until(session, AppExited)
    await session.aclose()


async def test_a_phone_has_one_developer_session(
    link: Pmd3Link, installed: str, keepers: Path
) -> None:
    first = await link.developer(deadline=soon())
    with pytest.raises(DeviceError, match=f"keeper {first.keeper_pid} has the phone"):
        await link.developer(deadline=soon())
    pid = await first.launch(installed, {}, deadline=soon())
    assert [(one.app_pid, one.bundle_id) for one in living(keepers)] == [(pid, installed)]
    await first.aclose()
    assert living(keepers) == []
    assert first.keeper_pid is not None
    await until_gone(first.keeper_pid, pid)


async def test_all_phones_have_sessions_at_the_same_time(
    found: Discovery, source: UsbmuxSource, starter: KeeperStarter, keepers: Path, installed: str
) -> None:
    broker = KeeperBroker(starter, root=keepers, die_with_parent=True)
    exits: dict[str, SessionEvent] = {}

    async def run(link: Pmd3Link, code: int) -> None:
        session = await link.developer(deadline=soon())
        await session.launch(installed, {"TINY_EXIT": str(code)}, deadline=soon())
        exits[link.phone.udid] = (await until(session, AppExited))[-1]
        await session.aclose()

    async with anyio.create_task_group() as tasks:
        for code, phone in enumerate(found.phones):
            tasks.start_soon(run, Pmd3Link(phone, source.address, broker), code)
    codes = [getattr(exits[phone.udid], "exit_code", None) for phone in found.phones]
    assert codes == [0, 1, 2]


async def test_a_keeper_that_hangs_is_killed_and_replaced_and_the_others_go_on(
    found: Discovery,
    source: UsbmuxSource,
    starter: KeeperStarter,
    keepers: Path,
    installed: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("orchestrator.device.keeper.client.KEEPER_GRACE_S", 1.0)
    broker = KeeperBroker(starter, root=keepers, die_with_parent=True)
    links = [Pmd3Link(phone, source.address, broker) for phone in found.phones]
    hung, *others = [await link.developer(deadline=soon()) for link in links]
    apps = [await one.launch(installed, {}, deadline=soon()) for one in others]
    pids = [hung.keeper_pid, *(one.keeper_pid for one in others)]
    assert hung.keeper_pid is not None
    os.kill(hung.keeper_pid, SIGSTOP)
    with pytest.raises(DeadlineExceededError, match="keeper process hangs"):
        await hung.physical_memory_bytes(deadline=Deadline.after(0.1))
    await hung.aclose()
    await until_gone(hung.keeper_pid)
    replaced = await links[0].developer(deadline=soon())
    app = await replaced.launch(installed, {}, deadline=soon())
    assert await replaced.is_running(app, deadline=soon())
    assert [one.keeper_pid for one in others] == pids[1:]
    for one, pid in zip(others, apps, strict=True):
        assert await one.is_running(pid, deadline=soon())
    for one in (replaced, *others):
        await one.aclose()


async def test_a_start_that_was_given_up_does_not_answer_for_the_next_one(
    found: Discovery, source: UsbmuxSource, keepers: Path
) -> None:
    async with KeeperStarter() as starter:
        broker = KeeperBroker(starter, root=keepers, die_with_parent=True)
        first, second = (Pmd3Link(one, source.address, broker) for one in found.phones[:2])
        with pytest.raises(DeviceError, match="did not start within"):
            await first.developer(deadline=Deadline.after(0.1))  # the host is still importing
        session = await second.developer(deadline=soon())
        record = read_record(place_of(keepers, second.phone.udid, source.address))
        assert record is not None
        assert (record.udid, record.pid) == (second.phone.udid, session.keeper_pid)
        await session.aclose()


async def test_without_a_client_the_lease_ends_keeper_and_app(
    link: Pmd3Link, source: UsbmuxSource, starter: KeeperStarter, keepers: Path, installed: str
) -> None:
    broker = KeeperBroker(starter, root=keepers, lease_s=0.2)
    session = await broker.open(link.phone, source.address, deadline=soon())
    pid = await session.launch(installed, {}, deadline=soon())
    await session.detach()
    assert session.keeper_pid is not None
    await until_gone(session.keeper_pid, pid)
    assert read_record(place_of(keepers, link.phone.udid, source.address)) is None
    assert await link.adopt(deadline=soon()) is None


async def test_a_lost_cable_is_a_lost_session(
    found: Discovery, source: UsbmuxSource, farm: FarmProcess, link: Pmd3Link, installed: str
) -> None:
    session = await link.developer(deadline=soon())
    await session.launch(installed, {}, deadline=soon())
    farm.order("unplug", link.phone.udid)
    try:
        assert isinstance((await until(session, SessionLost))[-1], SessionLost)
        with pytest.raises(DeviceError) as caught:
            await session.is_running(1, deadline=soon())
        assert caught.value.cause is Cause.DEVICE_LOST
        await session.aclose()
    finally:
        farm.order("plug_in", link.phone.udid)
    again = await link.developer(deadline=soon())
    assert await again.physical_memory_bytes(deadline=soon()) > 0
    await again.aclose()


async def test_a_restart_changes_the_boot_and_a_cable_does_not(
    link: Pmd3Link, farm: FarmProcess
) -> None:
    boots = []
    for order in (("unplug", "plug_in"), ("reboot",), ()):
        session = await link.developer(deadline=soon())
        boots.append(await session.boot_session(deadline=soon()))
        await session.aclose()
        for words in order:
            farm.order(words, link.phone.udid)
    before, after_cable, after_restart = boots
    assert before is not None
    assert after_cable == before
    assert after_restart not in (None, before)


@pytest.mark.parametrize(
    "handshake",
    [None, [], {}, {"Properties": []}, {"Properties": {"BootSessionUUID": 7}},
     {"Properties": {"BootSessionUUID": "../../x"}}],
)  # fmt: skip
def test_a_boot_that_is_no_uuid_is_not_said(handshake: object) -> None:
    assert boot_session_of(handshake) is None


async def test_a_locked_phone_refuses_the_launch_with_its_own_cause(
    link: Pmd3Link, farm: FarmProcess, installed: str
) -> None:
    session = await link.developer(deadline=soon())
    farm.order("set", link.phone.udid, "locked", "true")
    try:
        with pytest.raises(DeviceError) as caught:
            await session.launch(installed, {}, deadline=soon())
    finally:
        farm.order("set", link.phone.udid, "locked", "false")
    assert caught.value.cause is Cause.DEVICE_LOCKED
    await session.aclose()


async def test_an_app_that_is_not_installed_is_not_launched(link: Pmd3Link) -> None:
    session = await link.developer(deadline=soon())
    with pytest.raises(DeviceError, match="launch failed in dvt"):
        await session.launch("dev.example.nobody", {}, deadline=soon())
    await session.aclose()


async def test_a_phone_that_is_away_gives_no_session_and_no_keeper(
    link: Pmd3Link, farm: FarmProcess, keepers: Path
) -> None:
    farm.order("unplug", link.phone.udid)
    try:
        with pytest.raises(DeviceError, match="the phone is not attached"):
            await link.developer(deadline=soon())
    finally:
        farm.order("plug_in", link.phone.udid)
    assert living(keepers) == []


async def test_a_tunneld_that_has_the_phone_is_used(
    link: Pmd3Link,
    source: UsbmuxSource,
    farm: FarmProcess,
    starter: KeeperStarter,
    keepers: Path,
) -> None:
    broker = KeeperBroker(starter, root=keepers, tunneld=farm.tunneld, die_with_parent=True)
    farm.order("mute", link.phone.udid, "com.apple.internal.devicecompute.CoreDeviceProxy")
    try:
        session = await broker.open(link.phone, source.address, deadline=soon())
        assert await session.physical_memory_bytes(deadline=soon()) > 0
        await session.aclose()
    finally:
        farm.order("unmute", link.phone.udid, "com.apple.internal.devicecompute.CoreDeviceProxy")


async def test_a_keeper_started_afresh_does_the_same(
    link: Pmd3Link, source: UsbmuxSource, keepers: Path, installed: str
) -> None:
    async with KeeperStarter(forking=False) as starter:
        broker = KeeperBroker(starter, root=keepers, die_with_parent=True)
        session = await broker.open(link.phone, source.address, deadline=soon())
        pid = await session.launch(installed, {"TINY_EXIT": "3"}, deadline=soon())
        assert (await until(session, AppExited))[-1] == AppExited(pid, 3, None)
        await session.aclose()


@contextmanager
def orchestrator(
    link: Pmd3Link, source: UsbmuxSource, keepers: Path, how: str
) -> Iterator[tuple[subprocess.Popen[str], int, int]]:
    """Run another orchestrator; gives its process and the pids of its keeper and app."""
    words = [source.address, link.phone.udid, str(keepers), how]
    with subprocess.Popen(
        [sys.executable, "-m", "tests.device.orchestrator_child", *words],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        keeper_pid, app_pid = map(int, process.stdout.readline().split())
        yield process, keeper_pid, app_pid
        process.kill()


async def test_keepers_of_virtual_phones_die_with_a_killed_orchestrator(
    link: Pmd3Link, source: UsbmuxSource, keepers: Path, installed: str
) -> None:
    with orchestrator(link, source, keepers, "die") as (process, keeper_pid, app_pid):
        assert exists(keeper_pid)
        os.kill(process.pid, SIGKILL)
        await until_gone(keeper_pid)
    await until_free(place_of(keepers, link.phone.udid, source.address))
    session = await link.developer(deadline=soon())
    await session.kill(app_pid, deadline=soon())  # the phone outlived the orchestrator here
    await session.aclose()


async def test_a_killed_orchestrators_session_is_adopted_with_its_app(
    link: Pmd3Link, source: UsbmuxSource, keepers: Path, installed: str
) -> None:
    with orchestrator(link, source, keepers, "stay") as (process, keeper_pid, app_pid):
        os.kill(process.pid, SIGKILL)
        process.wait()
    session = await link.adopt(deadline=soon())
    assert session is not None
    assert (session.keeper_pid, session.app_pid) == (keeper_pid, app_pid)
    assert await session.is_running(app_pid, deadline=soon())
    await session.kill(app_pid, deadline=soon())
    assert AppExited(app_pid, None, int(SIGKILL)) in await until(session, AppExited)
    await session.aclose()
    await until_gone(keeper_pid)
