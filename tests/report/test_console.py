from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from orchestrator.report.console import CONSOLE_LIMIT_BYTES, console_text, within

if TYPE_CHECKING:
    from pathlib import Path


def test_a_short_console_is_told_whole(tmp_path: Path) -> None:
    (tmp_path / "console.log").write_bytes(b"ready\n\xff")
    assert console_text(tmp_path / "console.log") == "ready\n\ufffd"


def test_a_missing_or_empty_console_is_none(tmp_path: Path) -> None:
    assert console_text(tmp_path / "console.log") is None
    (tmp_path / "console.log").touch()
    assert console_text(tmp_path / "console.log") is None


def test_a_long_console_keeps_head_and_tail_and_says_what_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "console.log"
    path.write_bytes(b"first line\n" + b"x" * 5_000_000 + b"\nlast words")
    text = console_text(path)
    assert text is not None
    assert text.startswith("first line\n")
    assert text.endswith("\nlast words")
    assert "bytes are left out here" in text
    assert len(text.encode()) <= CONSOLE_LIMIT_BYTES


@pytest.mark.parametrize("character", ["x", "é", "😀", "\ud800"])
def test_a_text_is_cut_to_its_bytes(character: str) -> None:
    text = within(character * 300_000, CONSOLE_LIMIT_BYTES)
    assert len(text.encode()) <= CONSOLE_LIMIT_BYTES
    assert "bytes are left out" in text


def test_a_text_that_fits_stays() -> None:
    assert within("short", 100) == "short"
