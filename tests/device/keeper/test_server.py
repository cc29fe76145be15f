"""The keeper's server and client together, over a real unix socket, with a scripted session."""

from __future__ import annotations

import gc
import os
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
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
from orchestrator.device.keeper import lease
from orchestrator.device.keeper.client import KeeperClient
from orchestrator.device.keeper.place import KeeperPlace, claim, place_of
from orchestrator.device.keeper.server import KeeperServer
from orchestrator.domain.deadline import Deadline
from orchestrator.domain.errors import DeadlineExceededError, DeviceError
from orchestrator.domain.outcome import Cause
from tests.device.keeper.kept import ScriptedKept

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from anyio.abc import SocketStream, TaskGroup

LIMIT_S = 5.0


def soon() -> Deadline:
    return Deadline.after(LIMIT_S)


@dataclass
class Keeper:
    """A served session; `ended` is set when the server has returned."""

    place: KeeperPlace
    session: ScriptedKept
    server: KeeperServer
    apps: list[tuple[str | None, int | None]]
    ended: anyio.Event = field(default_factory=anyio.Event)

    async def attach(self) -> KeeperClient:
        return await KeeperClient.attach("bench-01", self.place, deadline=soon())

    async def until_ended(self) -> None:
        with anyio.fail_after(LIMIT_S):
            await self.ended.wait()


@asynccontextmanager
async def keeping(
    tmp_path: Path, session: ScriptedKept, *, lease_s: float = 60.0
) -> AsyncIterator[Keeper]:
    place = place_of(tmp_path / "k", "A", "default")
    apps: list[tuple[str | None, int | None]] = []
    server = KeeperServer("bench-01", 4711, session, lease_s, on_app=lambda *app: apps.append(app))
    session.emit = server.report
    keeper = Keeper(place, session, server, apps)
    lock = claim(place)
    listener = await anyio.create_unix_listener(place.socket)

    async def serve() -> None:
        try:
            await server.serve(listener)
        finally:
            os.close(lock)
            keeper.ended.set()

    tasks: TaskGroup
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve)
        yield keeper
        tasks.cancel_scope.cancel()


async def take(client: KeeperClient, count: int) -> list[SessionEvent]:
    taken: list[SessionEvent] = []
    with anyio.fail_after(LIMIT_S):
        async for event in client.events():
            taken.append(event)
            if len(taken) == count:
                break
    return taken


async def test_calls_reach_the_session_and_their_results_come_back(tmp_path: Path) -> None:
    async with keeping(tmp_path, ScriptedKept()) as keeper:
        client = await keeper.attach()
        pid = await client.launch("dev.app", {"FLEET_TOKEN": "t"}, ["--x"], deadline=soon())
        assert await client.is_running(pid, deadline=soon())
        assert await client.physical_memory_bytes(deadline=soon()) == 8_021_032_960
        await client.observe(pid, 1000, deadline=soon())
        await client.kill(pid, deadline=soon())
        assert not await client.is_running(pid, deadline=soon())
        assert keeper.session.calls[:2] == [
            "open",
            "launch dev.app {'FLEET_TOKEN': 't'} ['--x']",
        ]
        await client.aclose()


async def test_events_arrive_while_a_call_waits(tmp_path: Path) -> None:
    gate = anyio.Event()
    async with keeping(tmp_path, ScriptedKept(gates={"launch": gate})) as keeper:
        client = await keeper.attach()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: client.launch("dev.app", {}, deadline=soon()))
            keeper.server.report(AppOutput(7, "before the launch answers"))
            assert await take(client, 1) == [AppOutput(7, "before the launch answers")]
            gate.set()
        await client.aclose()


async def test_two_calls_at_once_each_get_their_own_answer(tmp_path: Path) -> None:
    gate = anyio.Event()
    async with keeping(tmp_path, ScriptedKept(gates={"launch": gate})) as keeper:
        client = await keeper.attach()
        answers: list[int] = []

        async def launch() -> None:
            answers.append(await client.launch("dev.app", {}, deadline=soon()))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(launch)
            answers.append(await client.physical_memory_bytes(deadline=soon()))
            gate.set()
        assert answers == [8_021_032_960, 100]
        await client.aclose()


async def test_closing_kills_the_app_and_ends_the_keeper(tmp_path: Path) -> None:
    async with keeping(tmp_path, ScriptedKept()) as keeper:
        client = await keeper.attach()
        await client.launch("dev.app", {}, deadline=soon())
        await client.aclose()
        await keeper.until_ended()
        assert keeper.session.running == set()
        assert keeper.session.calls[-1] == "aclose"


async def test_the_app_outlives_a_client_that_detaches_and_is_adopted(tmp_path: Path) -> None:
    async with keeping(tmp_path, ScriptedKept()) as keeper:
        first = await keeper.attach()
        pid = await first.launch("dev.app", {}, deadline=soon())
        await first.detach()
        await first.aclose()  # after a detach it leaves the keeper alone
        keeper.server.report(FootprintObserved(pid, 5))
        second = await keeper.attach()
        assert second.app_pid == pid
        assert await take(second, 1) == [FootprintObserved(pid, 5)]
        assert await second.is_running(pid, deadline=soon())
        assert keeper.session.calls.count("open") == 1
        await second.aclose()


async def test_an_exit_while_nobody_listens_is_told_to_the_adopter_once(tmp_path: Path) -> None:
    async with keeping(tmp_path, ScriptedKept()) as keeper:
        first = await keeper.attach()
        pid = await first.launch("dev.app", {}, deadline=soon())
        await first.detach()
        keeper.server.report(AppExited(pid, None, 9))
        keeper.server.report(AppOutput(pid, "last"))
        second = await keeper.attach()
        assert second.app_pid is None
        assert await take(second, 2) == [AppExited(pid, None, 9), AppOutput(pid, "last")]
        await second.aclose()


async def test_an_exit_that_a_former_client_saw_is_told_again(tmp_path: Path) -> None:
    async with keeping(tmp_path, ScriptedKept()) as keeper:
        first = await keeper.attach()
        pid = await first.launch("dev.app", {}, deadline=soon())
        keeper.server.report(AppExited(pid, 7, None))
        assert await take(first, 1) == [AppExited(pid, 7, None)]
        await first.detach()
        second = await keeper.attach()
        assert await take(second, 1) == [AppExited(pid, 7, None)]
        await second.aclose()


async def test_without_a_client_the_lease_ends_and_the_app_is_killed(tmp_path: Path) -> None:
    async with keeping(tmp_path, ScriptedKept(), lease_s=2.0) as keeper:
        client = await keeper.attach()
        await client.launch("dev.app", {}, deadline=soon())
        await client.detach()
        await keeper.until_ended()
        assert keeper.session.calls[-2:] == ["kill 100", "aclose"]


async def test_a_keeper_that_ends_instead_of_greeting_leaves_no_socket_open(tmp_path: Path) -> None:
    place = place_of(tmp_path / "k", "A", "default")
    os.close(claim(place))
    accepted: list[SocketStream] = []

    async def hang_up(stream: SocketStream) -> None:
        accepted.append(stream)
        await stream.aclose()

    async with (
        await anyio.create_unix_listener(place.socket) as listener,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(listener.serve, hang_up)
        with pytest.raises(DeviceError, match="no keeper answers"):
            await KeeperClient.attach("bench-01", place, deadline=soon())
        gc.collect()  # an open socket would warn here, and warnings are errors
        tasks.cancel_scope.cancel()
    assert accepted


async def test_a_keeper_whose_phone_and_client_are_gone_does_not_wait_for_its_lease(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "BEREFT_LIMIT_S", 0.05)
    async with keeping(tmp_path, ScriptedKept(), lease_s=1800.0) as keeper:
        client = await keeper.attach()
        await client.launch("dev.app", {}, deadline=soon())
        keeper.server.report(SessionLost("unplugged"))
        await client.detach()
        await keeper.until_ended()


async def test_a_keeper_that_launched_nothing_ends_with_its_client(tmp_path: Path) -> None:
    async with keeping(tmp_path, ScriptedKept()) as keeper:
        client = await keeper.attach()
        await client.detach()
        await keeper.until_ended()


async def test_a_second_client_is_refused_while_the_first_is_there(tmp_path: Path) -> None:
    async with keeping(tmp_path, ScriptedKept()) as keeper:
        first = await keeper.attach()
        with pytest.raises(DeviceError, match="session is held"):
            await keeper.attach()
        assert await first.physical_memory_bytes(deadline=soon()) > 0
        await first.aclose()


async def test_an_error_of_the_phone_comes_back_whole(tmp_path: Path) -> None:
    locked = DeviceError(
        "bench-01", "dvt", "launch", "Locked", cause=Cause.DEVICE_LOCKED, remedy="Unlock it"
    )
    async with keeping(tmp_path, ScriptedKept(failures={"launch": locked})) as keeper:
        client = await keeper.attach()
        with pytest.raises(DeviceError, match=r"Locked\. Unlock it") as caught:
            await client.launch("dev.app", {}, deadline=soon())
        assert caught.value.cause is Cause.DEVICE_LOCKED
        await client.aclose()


async def test_a_session_that_does_not_open_ends_its_keeper(tmp_path: Path) -> None:
    refused = DeviceError("bench-01", "tunnel", "open", "Developer Mode is off")
    async with keeping(tmp_path, ScriptedKept(failures={"open": refused})) as keeper:
        with pytest.raises(DeviceError, match="Developer Mode is off"):
            await keeper.attach()
        await keeper.until_ended()


async def test_after_the_loss_every_call_fails_with_the_first_error(tmp_path: Path) -> None:
    async with keeping(tmp_path, ScriptedKept()) as keeper:
        client = await keeper.attach()
        keeper.server.report(SessionLost("the phone closed the connection"))
        assert await take(client, 1) == [SessionLost("the phone closed the connection")]
        for _ in range(2):
            with pytest.raises(DeviceError, match="the phone closed the connection"):
                await client.is_running(7, deadline=soon())
        assert "is_running 7" not in keeper.session.calls
        await client.aclose()


async def test_events_end_after_the_loss(tmp_path: Path) -> None:
    async with keeping(tmp_path, ScriptedKept()) as keeper:
        client = await keeper.attach()
        keeper.server.report(SessionLost("cable"))
        with anyio.fail_after(LIMIT_S):
            events = [event async for event in client.events()]
        assert events == [SessionLost("cable")]
        await client.aclose()


async def test_a_dead_keeper_is_a_lost_session(tmp_path: Path) -> None:
    async with keeping(tmp_path, ScriptedKept()) as keeper:
        client = await keeper.attach()
        keeper.server.end()
        with anyio.fail_after(LIMIT_S):
            events = [event async for event in client.events()]
        assert events == [SessionLost("the keeper process is gone")]
        with pytest.raises(DeviceError, match="the keeper process is gone"):
            await client.launch("dev.app", {}, deadline=soon())
        await client.aclose()


async def test_a_keeper_that_hangs_costs_the_deadline_not_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.device.keeper.client.KEEPER_GRACE_S", 0.0)
    session = ScriptedKept(gates={"launch": anyio.Event()})
    async with keeping(tmp_path, session) as keeper:
        client = await keeper.attach()
        with pytest.raises(DeadlineExceededError, match=r"no answer within 0\.05 s"):
            await client.launch("dev.app", {}, deadline=Deadline.after(0.05))
        assert await client.physical_memory_bytes(deadline=soon()) > 0
        await client.aclose()


async def test_a_launch_whose_client_has_gone_is_finished_and_known(tmp_path: Path) -> None:
    gate = anyio.Event()
    session = ScriptedKept(gates={"launch": gate}, output_after_launch="up")
    async with keeping(tmp_path, session) as keeper:
        first = await keeper.attach()
        with anyio.move_on_after(0.02):
            await first.launch("dev.app", {}, deadline=soon())
        gate.set()
        await take(first, 1)
        await first.detach()
        second = await keeper.attach()
        assert second.app_pid == 100
        await second.aclose()


async def test_an_app_that_dies_before_the_launch_answers_is_not_running(tmp_path: Path) -> None:
    session = ScriptedKept(exits_before_the_launch_answers=True)
    async with keeping(tmp_path, session) as keeper:
        client = await keeper.attach()
        pid = await client.launch("dev.app", {}, deadline=soon())
        assert await take(client, 1) == [AppExited(pid, 1, None)]
        assert keeper.apps == []
        await client.aclose()


async def test_the_record_follows_the_app(tmp_path: Path) -> None:
    async with keeping(tmp_path, ScriptedKept()) as keeper:
        client = await keeper.attach()
        pid = await client.launch("dev.app", {}, deadline=soon())
        await client.kill(pid, deadline=soon())
        assert keeper.apps == [("dev.app", 100), (None, None)]
        await client.aclose()


async def test_a_client_that_sends_junk_is_dropped_and_the_next_one_served(tmp_path: Path) -> None:
    async with keeping(tmp_path, ScriptedKept()) as keeper:
        first = await keeper.attach()
        await first.launch("dev.app", {}, deadline=soon())
        await first.detach()
        async with await anyio.connect_unix(keeper.place.socket) as junk:
            await junk.receive()
            await junk.send(b"\xff not json\n")
            with pytest.raises(anyio.EndOfStream):
                await junk.receive()
        second = await keeper.attach()
        await second.aclose()


async def test_nobody_there_is_a_device_error(tmp_path: Path) -> None:
    place = place_of(tmp_path, "nobody", "default")
    with pytest.raises(DeviceError, match="no keeper answers"):
        await KeeperClient.attach("bench-01", place, deadline=soon())
