from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.virtual.tunnel.inbound import Reassembly
from orchestrator.virtual.tunnel.outbound import SendBuffer
from orchestrator.virtual.tunnel.packet import (
    Flags,
    Options,
    Packet,
    Segment,
    add,
    checksum,
    distance,
    encode_packet,
    is_before,
    parse_packet,
)

HOST, PHONE = bytes(15) + b"\1", bytes(15) + b"\2"
numbers = st.integers(0, 2**32 - 1)


def packet(**changes: object) -> Packet:
    values = {"source_port": 1, "target_port": 2, "seq": 3, "ack": 4, "flags": Flags.ACK}
    return Packet(HOST, PHONE, Segment(**{**values, "window": 5, **changes}))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "options",
    [
        Options(),
        Options(mss=1340, window_shift=7, sack_permitted=True),
        Options(sack=((1, 2), (5, 9))),
    ],
)
@pytest.mark.parametrize("data", [b"", b"a", b"data"])
def test_what_is_encoded_is_parsed(options: Options, data: bytes) -> None:
    sent = packet(options=options, data=data)
    assert parse_packet(encode_packet(sent)) == sent


def test_the_checksum_of_an_encoded_segment_is_right() -> None:
    data = encode_packet(packet(data=b"odd"))
    pseudo = HOST + PHONE + len(data[40:]).to_bytes(4, "big") + (6).to_bytes(4, "big")
    body = pseudo + data[40:] + b"\0" * (len(data) % 2)
    words = [int.from_bytes(body[at : at + 2], "big") for at in range(0, len(body), 2)]
    total = sum(words)
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    assert total == 0xFFFF
    assert 0 < checksum(HOST, PHONE, b"") <= 0xFFFF


@given(st.binary(max_size=120))
def test_bytes_of_any_kind_are_a_packet_or_not(data: bytes) -> None:
    parse_packet(data)
    parse_packet(bytes(6) + b"\6" + data)


@given(numbers, st.integers(0, 2**31 - 1))
def test_sequence_numbers_wrap_around(seq: int, count: int) -> None:
    later = add(seq, count)
    assert distance(seq, later) == count
    assert is_before(seq, later) == (count > 0)
    assert not is_before(later, seq)


@given(numbers, st.lists(st.integers(1, 9), min_size=1, max_size=12), st.randoms())
def test_segments_in_any_order_and_twice_give_the_bytes_once(
    start: int, sizes: list[int], random: st.DataObject
) -> None:
    whole = bytes(range(sum(sizes)))
    segments, at = [], 0
    for size in sizes:
        segments.append((add(start, at), whole[at : at + size]))
        at += size
    shuffled = segments * 2
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    reassembly = Reassembly(start)
    received = b"".join(chunk for seq, data in shuffled for chunk in reassembly.accept(seq, data))
    assert received == whole
    assert not reassembly.has_hole
    assert reassembly.next_seq == add(start, len(whole))


def test_a_hole_is_reported_with_the_latest_range_first() -> None:
    reassembly = Reassembly(100)
    assert reassembly.accept(110, b"aa") == []
    assert reassembly.accept(112, b"bb") == []
    assert reassembly.accept(130, b"cc") == []
    assert reassembly.sack_blocks() == ((130, 132), (110, 114))
    assert reassembly.accept(100, bytes(10)) == [bytes(10), b"aa", b"bb"]
    assert reassembly.sack_blocks() == ((130, 132),)


def test_data_far_ahead_of_a_hole_is_not_hoarded() -> None:
    reassembly = Reassembly(0)
    for at in range(1, 5):
        reassembly.accept(at << 20, bytes(1 << 20))
    held = sum(distance(*block) for block in reassembly.sack_blocks())
    assert held == 2 << 20


def test_the_send_buffer_respects_segment_and_window() -> None:
    buffer = SendBuffer(2**32 - 2)
    buffer.write(b"abcdefgh")
    first, second = buffer.take(3, 5), buffer.take(3, 5)
    assert first is not None
    assert second is not None
    assert (first.data, second.data, second.seq) == (b"abc", b"de", 1)
    assert buffer.take(3, 5) is None
    assert buffer.acknowledge(1)
    third = buffer.take(3, 5)
    assert third is not None
    assert (third.data, third.is_last) == (b"fgh"[:3], True)


def test_the_end_is_sent_once_and_acknowledged_apart() -> None:
    buffer = SendBuffer(0)
    buffer.write(b"ab")
    buffer.end()
    buffer.write(b"too late")
    data, fin = buffer.take(10, 100), buffer.take(10, 100)
    assert data is not None
    assert fin is not None
    assert (data.data, fin.fin, fin.seq) == (b"ab", True, 2)
    assert buffer.take(10, 100) is None
    assert buffer.acknowledge(2)
    assert not buffer.fin_acknowledged
    assert buffer.acknowledge(3)
    assert buffer.fin_acknowledged


def test_acknowledgements_beyond_a_rewind_count() -> None:
    buffer = SendBuffer(0)
    buffer.write(b"abcd")
    buffer.end()
    buffer.take(10, 100)
    buffer.take(10, 100)
    buffer.rewind()
    assert buffer.acknowledge(5)
    assert buffer.fin_acknowledged
    assert buffer.take(10, 100) is None


@pytest.mark.parametrize("ack", [0, 6, 2**31, 2**32 - 1])
def test_acknowledgements_of_what_was_never_written_are_ignored(ack: int) -> None:
    buffer = SendBuffer(0)
    buffer.write(b"abcde")
    buffer.take(5, 100)
    assert not buffer.acknowledge(ack)
    assert len(buffer) == 5
