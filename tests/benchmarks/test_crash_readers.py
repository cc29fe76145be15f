from __future__ import annotations

from pathlib import Path

from tests.benchmarks.crash_readers import files, read_here, read_there, table

DOCUMENT = Path(__file__).parents[2] / "docs" / "evidence.md"


def test_nothing_raises_here() -> None:
    assert [name for name, content in files().items() if read_here(content).error] == []


def test_the_other_reader_is_really_asked() -> None:
    readings = [read_there(content) for content in files().values()]
    assert any(reading.error for reading in readings)
    assert any(reading.victim for reading in readings)


def test_the_table_in_the_documentation_is_what_the_command_prints() -> None:
    assert "\n".join(table()) in DOCUMENT.read_text()
