from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.virtual.kernel.output import LINE_LIMIT_BYTES, LineSplitter


def split(*pieces: bytes) -> list[str]:
    splitter = LineSplitter()
    return [line for piece in pieces for line in splitter.feed(piece)] + splitter.finish()


def test_lines_come_without_their_ends_and_the_last_needs_none() -> None:
    assert split(b"one\ntwo\r\n\nlast") == ["one", "two", "", "last"]


def test_bytes_that_are_not_utf8_are_replaced() -> None:
    assert split(b"a\xffb\n") == ["a\ufffdb"]


def test_a_stream_without_newlines_comes_in_bounded_pieces() -> None:
    assert [len(line) for line in split(b"x" * (2 * LINE_LIMIT_BYTES + 5))] == [
        LINE_LIMIT_BYTES,
        LINE_LIMIT_BYTES,
        5,
    ]


@given(st.binary(max_size=200), st.integers(0, 200))
def test_where_the_stream_is_cut_does_not_matter(data: bytes, at: int) -> None:
    assert split(data[:at], data[at:]) == split(data)
