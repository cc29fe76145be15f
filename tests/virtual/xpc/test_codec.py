from __future__ import annotations

import contextlib
import struct
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pymobiledevice3.remote.xpc_message import XpcWrapper, create_xpc_wrapper, decode_xpc_object

from orchestrator.virtual.wire import ProtocolError
from orchestrator.virtual.xpc.codec import (
    Unsigned,
    decode,
    encode,
    encode_message,
    take_message,
)

keys = st.text(st.characters(min_codepoint=1, exclude_categories=["Cs"]), max_size=20)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.binary(max_size=50)
    | keys
    | st.uuids(),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(keys, children, max_size=4),
    max_leaves=12,
)


@given(values)
def test_what_is_encoded_is_decoded(value: object) -> None:
    assert decode(encode(value)) == value


def test_unsigned_numbers_keep_their_type_and_range() -> None:
    decoded = decode(encode(Unsigned(2**64 - 1)))
    assert decoded == 2**64 - 1
    assert isinstance(decoded, Unsigned)


@given(st.binary(max_size=200))
def test_bytes_of_any_kind_are_decoded_or_refused(data: bytes) -> None:
    with contextlib.suppress(ProtocolError):
        decode(data)


@given(values, st.data())
def test_a_cut_object_is_refused(value: object, data: st.DataObject) -> None:
    whole = encode({"value": value, "end": 1})
    cut = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(ProtocolError):
        decode(whole[:cut])


def test_an_object_nested_without_end_is_refused() -> None:
    deep = struct.pack("<III", 0xE000, 0, 1) * 5000
    with pytest.raises(ProtocolError, match="deep"):
        decode(deep)


def test_the_real_client_reads_our_messages() -> None:
    body = {"a": Unsigned(7), "b": [True, None, "ä"], "c": uuid.UUID(int=5), "d": b"\0\1"}
    wrapper = XpcWrapper.parse(encode_message(0x101, 3, body))
    assert wrapper.message_id == 3
    assert wrapper.payload is not None
    assert decode_xpc_object(wrapper.payload) == body


def test_we_read_the_real_clients_messages() -> None:
    buffer = bytearray(create_xpc_wrapper({"feature": "launch", "list": [True, "a"]}, 9))
    message = take_message(buffer)
    assert message is not None
    assert message.message_id == 9
    assert message.body == {"feature": "launch", "list": [True, "a"]}
    assert not buffer


def test_a_message_is_taken_only_when_it_is_whole() -> None:
    whole = encode_message(1, 5, {"x": 1})
    buffer = bytearray(whole[:-1])
    assert take_message(buffer) is None
    buffer += whole[-1:] + whole[:3]
    message = take_message(buffer)
    assert message is not None
    assert message.body == {"x": 1}
    assert buffer == whole[:3]


@pytest.mark.parametrize("head", [b"\0" * 24, struct.pack("<IIQQ", 0x29B00B92, 1, 1 << 40, 0)])
def test_a_wrapper_that_makes_no_sense_is_refused(head: bytes) -> None:
    with pytest.raises(ProtocolError):
        take_message(bytearray(head))
