from __future__ import annotations

import asyncio
import contextlib
import signal
import struct
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.virtual.dtx.message import (
    Message,
    MessageKind,
    MessageReader,
    decode_arguments,
    encode,
    encode_arguments,
)
from orchestrator.virtual.dtx.nska import archive
from orchestrator.virtual.dtx.signals import to_darwin, to_host
from orchestrator.virtual.wire import ProtocolError


async def read_all(data: bytes, count: int) -> list[Message]:
    reader = asyncio.StreamReader()
    reader.feed_data(data)
    reader.feed_eof()
    messages = MessageReader(reader)
    return [await messages.read() for _ in range(count)]


async def test_a_call_keeps_its_selector_and_arguments() -> None:
    sent = Message.dispatch(5, -3, "outputReceived:fromProcess:atTime:", "line\n", 7, None)
    (received,) = await read_all(encode(sent), 1)
    assert received == sent
    assert received.selector() == "outputReceived:fromProcess:atTime:"
    assert decode_arguments(received.arguments) == ["line\n", 7, None]


@pytest.mark.parametrize("size", [0, 1, 128 * 1024 - 16, 128 * 1024, 300_000])
async def test_a_message_of_any_size_survives_its_fragments(size: int) -> None:
    sent = Message(MessageKind.OBJECT, 9, 0, -1, payload=bytes(size))
    assert await read_all(encode(sent), 1) == [sent]


async def test_fragments_of_two_messages_may_be_interleaved() -> None:
    first = Message(MessageKind.OBJECT, 1, 0, 1, payload=b"a" * 200_000)
    second = Message(MessageKind.OBJECT, 2, 0, 1, payload=b"b" * 200_000)
    one, two = encode(first), encode(second)
    # the header-only fragment, then one of 128 KiB, then the rest
    cuts = [0, 32, 32 + 32 + 128 * 1024, len(one)]
    pieces = [data[a:b] for a, b in pairwise(cuts) for data in (one, two)]
    assert await read_all(b"".join(pieces), 2) == [first, second]


@pytest.mark.parametrize(
    "data",
    [
        bytes(32),
        struct.pack("<IIHHIIIiI", 0x1F3D5B79, 32, 0, 1, 1 << 31, 1, 0, 0, 0),
        struct.pack("<IIHHIIIiI", 0x1F3D5B79, 8, 0, 1, 0, 1, 0, 0, 0),
        struct.pack("<IIHHIIIiI", 0x1F3D5B79, 32, 0, 1, 3, 1, 0, 0, 0) + b"abc",
        struct.pack("<IIHHIIIiI", 0x1F3D5B79, 32, 1, 2, 3, 1, 0, 0, 0) + b"abc",
    ],
)
async def test_fragments_that_make_no_sense_are_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        await read_all(data, 1)


def test_plain_numbers_and_strings_are_arguments_too() -> None:
    null = struct.pack("<I", 10)
    block = bytes(16) + null + struct.pack("<Ii", 3, -5) + null + struct.pack("<Iq", 6, 1 << 40)
    block += null + struct.pack("<Id", 9, 0.5) + null + struct.pack("<II", 1, 2) + b"ab"
    assert decode_arguments(block) == [-5, 1 << 40, 0.5, "ab"]


@given(st.binary(max_size=80))
def test_argument_bytes_of_any_kind_are_read_or_refused(data: bytes) -> None:
    with contextlib.suppress(ProtocolError):
        decode_arguments(bytes(16) + data)


def test_a_cut_argument_is_refused() -> None:
    whole = encode_arguments(("argument",))
    with pytest.raises(ProtocolError):
        decode_arguments(whole[:-1])


def test_a_selector_that_is_no_string_is_refused() -> None:
    message = Message(MessageKind.DISPATCH, 1, 0, 0, payload=archive(7))
    with pytest.raises(ProtocolError, match="selector"):
        message.selector()


def test_signals_are_translated_by_name() -> None:
    assert to_host(17) == signal.SIGSTOP
    assert to_host(19) == signal.SIGCONT
    assert to_host(9) == signal.SIGKILL
    assert to_host(99) is None
    assert to_darwin(signal.SIGBUS) == 10
    assert to_darwin(signal.SIGSEGV) == 11
    assert to_darwin(250) == 250
