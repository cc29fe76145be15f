from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.device.keeper.lines import MAX_LINE_CHARS, LineAssembler, printable


def test_a_line_in_pieces_comes_out_once_it_is_whole() -> None:
    lines = LineAssembler()
    assert lines.push("fleet-har") == []
    assert lines.push("ness listening\nsec") == ["fleet-harness listening"]
    assert lines.flush() == ["sec"]
    assert lines.flush() == []


def test_carriage_returns_and_empty_lines() -> None:
    assert LineAssembler().push("a\r\n\nb\n") == ["a", "", "b"]


def test_output_without_newlines_does_not_grow_the_buffer() -> None:
    lines = LineAssembler()
    pieces = [line for _ in range(10) for line in lines.push("x" * MAX_LINE_CHARS)]
    assert all(len(line) == MAX_LINE_CHARS for line in pieces)
    assert len(pieces) == 9


def test_escape_sequences_and_lone_surrogates_cannot_be_written_to_a_terminal() -> None:
    assert printable("a\x1b[31m\x00\ud800b\tc") == "a\ufffd[31m\ufffd?b\tc"


@given(st.lists(st.text(alphabet="ab\n", max_size=20)))
def test_however_the_text_is_cut_the_lines_are_the_same(pieces: list[str]) -> None:
    cut, whole = LineAssembler(), LineAssembler()
    in_pieces = [line for piece in pieces for line in cut.push(piece)] + cut.flush()
    assert in_pieces == whole.push("".join(pieces)) + whole.flush()
