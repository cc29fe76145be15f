"""The id-to-bytes table: what is written is read back, and a broken one is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.mlpackage.errors import FormatError
from orchestrator.mlpackage.tokens.table import decode_table, encode_table


@given(st.lists(st.binary(max_size=9), max_size=40))
def test_a_table_is_read_back_as_written(pieces: list[bytes]) -> None:
    assert decode_table(encode_table(pieces)) == pieces


def test_the_layout_is_the_documented_one() -> None:
    wanted = b"FTKT" + bytes([1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0])
    wanted += bytes([0, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0]) + b"abc"
    assert encode_table([b"a", b"bc"]) == wanted


@given(st.binary(max_size=64))
def test_any_bytes_are_a_table_or_a_format_error(content: bytes) -> None:
    try:
        decode_table(content)
    except FormatError:
        return


@pytest.mark.parametrize("cut", [3, 15, 20, 27])
def test_a_cut_table_is_refused(cut: int) -> None:
    with pytest.raises(FormatError):
        decode_table(encode_table([b"a", b"bc"])[:cut])
