"""The host's control client against scripted apps."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel
import pytest

from orchestrator.domain.deadline import Deadline
from orchestrator.domain.errors import DeadlineExceededError
from orchestrator.harness.control import (
    AppClient,
    CommandRefusedError,
    ConnectionLostError,
    ProtocolViolationError,
)
from tests.harness.standin_process import TOKEN, Record, StandIn, scenario

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

HELLO = {
    "reply": "hello",
    "id": 1,
    "ok": True,
    "protocol": 1,
    "app": "a",
    "pid": 7,
    "launch": "l",
    "started": False,
    "seq": 0,
}


def line(message: object) -> bytes:
    return json.dumps(message).encode() + b"\n"


def status(number: int, **changes: object) -> bytes:
    reply = {"reply": "status", "id": number, "ok": True, "started": True, "seq": 3}
    return line({**reply, "tokens_total": 12, "phase": "decode", **changes})


class ScriptedApp:
    """A stream that gives pieces in order, then ends, hangs or breaks."""

    def __init__(self, pieces: Iterable[bytes], *, then: str = "end") -> None:
        self._pieces, self._then = list(pieces), then
        self.sent: list[Record] = []
        self.closed = False

    async def receive(self, max_bytes: int = 65536) -> bytes:
        await anyio.lowlevel.checkpoint()
        if self._pieces:
            piece = self._pieces[0][:max_bytes]
            self._pieces[0] = self._pieces[0][max_bytes:]
            if not self._pieces[0]:
                self._pieces.pop(0)
            return piece
        if self._then == "hang":
            await anyio.sleep_forever()
        if self._then == "break":
            raise anyio.BrokenResourceError
        raise anyio.EndOfStream

    async def send(self, item: bytes) -> None:
        await anyio.lowlevel.checkpoint()
        if self._then == "break":
            raise anyio.BrokenResourceError
        self.sent += [json.loads(each) for each in item.splitlines()]

    async def aclose(self) -> None:
        self.closed = True
        await anyio.lowlevel.checkpoint()


def soon() -> Deadline:
    return Deadline.after(5.0)


async def all_records(client: AppClient) -> list[bytes]:
    return [record async for record in client.records()]


async def test_hello_presents_the_token_and_returns_what_the_app_is() -> None:
    app = ScriptedApp([line(HELLO)])
    hello = await AppClient(app, alias="desk").hello(TOKEN, soon())
    assert app.sent == [{"id": 1, "command": "hello", "token": TOKEN}]
    assert (hello.protocol, hello.pid, hello.launch, hello.started) == (1, 7, "l", False)


async def test_start_sends_scenario_packages_and_a_nonce_of_16_digits() -> None:
    app = ScriptedApp([line({"reply": "start", "id": 1, "ok": True})])
    client = AppClient(app, alias="desk")
    await client.start(soon(), run_id="r", nonce=255, scenario={"seed": 1}, packages=[{"a": "b"}])
    assert app.sent[0]["nonce"] == "00000000000000ff"
    assert (app.sent[0]["scenario"], app.sent[0]["packages"]) == ({"seed": 1}, [{"a": "b"}])


async def test_records_keep_their_bytes_and_replies_are_not_among_them() -> None:
    first, second = b'{"kind":"a",  "seq":1}\n', b'{"kind":"b"}\n'
    app = ScriptedApp([first + status(1) + second])
    client = AppClient(app, alias="desk")
    assert (await client.status(soon())).tokens_total == 12
    assert await all_records(client) == [first, second]


async def test_lines_may_arrive_in_any_pieces() -> None:
    stream = b'{"kind":"a"}\n' + status(1) + b'{"kind":"b"}\n'
    client = AppClient(ScriptedApp(bytes([byte]) for byte in stream), alias="desk")
    assert (await client.status(soon())).phase == "decode"
    assert await all_records(client) == [b'{"kind":"a"}\n', b'{"kind":"b"}\n']


async def test_a_torn_last_line_is_no_record_and_is_counted() -> None:
    client = AppClient(ScriptedApp([b'{"kind":"a"}\n{"kind":']), alias="desk")
    assert await all_records(client) == [b'{"kind":"a"}\n']
    assert client.torn_bytes == 8


async def test_garbage_is_handed_on_for_the_run_directory_to_judge() -> None:
    garbage = [b"\xff\xfe\n", b"[" * 5000 + b"\n", b"\n", b'{"reply":5,"id":1,"ok":true}\n']
    client = AppClient(ScriptedApp(garbage), alias="desk")
    assert await all_records(client) == garbage


async def test_a_record_that_calls_itself_a_reply_is_a_record() -> None:
    trick = line({"reply": "status", "id": 1, "ok": True, "kind": "sample"})
    client = AppClient(ScriptedApp([trick, status(1)]), alias="desk")
    assert (await client.status(soon())).tokens_total == 12
    assert await all_records(client) == [trick]


async def test_replies_nobody_waits_for_are_dropped() -> None:
    client = AppClient(ScriptedApp([status(77), status(1)]), alias="desk")
    assert (await client.status(soon())).seq == 3
    assert await all_records(client) == []


async def test_a_refusal_names_the_phone_the_command_and_the_reason() -> None:
    refusal = {"reply": "start", "id": 1, "ok": False, "error": "scenario", "message": "seed"}
    client = AppClient(ScriptedApp([line(refusal)]), alias="desk")
    with pytest.raises(CommandRefusedError, match=r"desk: start failed in app.*'seed'") as caught:
        await client.start(soon(), run_id="r", nonce=1, scenario={}, packages=[])
    assert caught.value.error == "scenario"


async def test_a_long_message_of_the_phone_is_cut() -> None:
    refusal = {"reply": "stop", "id": 1, "ok": False, "error": "x" * 9000, "message": "y" * 9000}
    with pytest.raises(CommandRefusedError) as caught:
        await AppClient(ScriptedApp([line(refusal)]), alias="desk").stop(soon())
    assert len(str(caught.value)) < 600


async def test_the_answer_to_another_command_breaks_the_protocol() -> None:
    client = AppClient(ScriptedApp([status(1)]), alias="desk")
    with pytest.raises(ProtocolViolationError, match="answered 'status'"):
        await client.stop(soon())


async def test_no_reply_in_time_is_a_deadline_error_and_the_client_goes_on() -> None:
    app = ScriptedApp([b'{"kind":"a"}\n'], then="hang")
    client = AppClient(app, alias="desk")
    with pytest.raises(DeadlineExceededError, match=r"no answer within 0\.05 s"):
        await client.status(Deadline.after(0.05))
    with anyio.fail_after(1):
        async for record in client.records():
            assert record == b'{"kind":"a"}\n'
            break


async def test_a_closed_connection_is_lost_for_a_command_and_the_end_for_records() -> None:
    client = AppClient(ScriptedApp([b'{"kind":"a"}\n']), alias="desk")
    with pytest.raises(ConnectionLostError, match="closed the connection"):
        await client.status(soon())
    assert await all_records(client) == [b'{"kind":"a"}\n']


@pytest.mark.parametrize("call", ["records", "status"])
async def test_a_broken_connection_raises_no_library_error(call: str) -> None:
    client = AppClient(ScriptedApp([], then="break"), alias="desk")
    with pytest.raises(ConnectionLostError, match=r"desk: .* broke"):
        await (all_records(client) if call == "records" else client.status(soon()))


@pytest.mark.parametrize("ending", [b"", b"\n"])
async def test_a_line_over_64_kib_ends_the_connection_and_every_later_call(ending: bytes) -> None:
    app = ScriptedApp([b"x" * 70_000 + ending], then="hang")
    client = AppClient(app, alias="desk")
    with pytest.raises(ProtocolViolationError, match="a line of over 65536 bytes"):
        await all_records(client)
    assert app.closed
    with pytest.raises(ProtocolViolationError):
        await client.status(soon())


async def test_a_line_of_exactly_64_kib_is_taken() -> None:
    longest = b"x" * 65_535 + b"\n"
    assert await all_records(AppClient(ScriptedApp([longest]), alias="desk")) == [longest]


async def test_one_task_takes_records_while_another_asks() -> None:
    pieces = [line({"kind": "a", "seq": seq}) for seq in range(200)] + [status(1), status(2)]
    client = AppClient(ScriptedApp(pieces), alias="desk")
    taken: list[bytes] = []

    async def take() -> None:
        taken.extend(await all_records(client))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(take)
        assert (await client.status(soon())).tokens_total == 12
        assert (await client.status(soon())).tokens_total == 12
    assert [json.loads(each)["seq"] for each in taken] == list(range(200))


async def test_records_that_nobody_takes_are_not_piled_up_without_bound() -> None:
    flood = [b"x" * 60_000 + b"\n"] * 1000
    app = ScriptedApp(flood, then="hang")
    client = AppClient(app, alias="desk")
    with pytest.raises(DeadlineExceededError):
        await client.status(Deadline.after(1.0))
    assert len(app._pieces) > 300


async def test_the_client_runs_a_soak_of_the_stand_in_with_a_reconnect(
    launch: Callable[..., StandIn],
) -> None:
    app = launch()
    first = AppClient(await anyio.connect_unix(app.socket_path), alias="desk")
    hello = await first.hello(TOKEN, soon())
    await first.start(soon(), run_id="r", nonce=1, scenario=scenario(), packages=app.packages)
    got: list[bytes] = []
    async for record in first.records():
        got.append(record)
        if len(got) == 12:
            break
    await first.aclose()
    second = AppClient(await anyio.connect_unix(app.socket_path), alias="desk")
    await second.hello(TOKEN, soon())
    await second.resume(hello.launch, 12, soon())
    with anyio.fail_after(15):
        got += await all_records(second)
    await second.aclose()
    assert b"".join(got) == app.journal
