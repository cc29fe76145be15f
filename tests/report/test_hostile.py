"""Hostile text in Markdown, terminal and log; the browser's and JUnit's tests have the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from orchestrator.cli.printing import note
from orchestrator.report.annotations import annotation_lines
from orchestrator.report.summary_md import summary_markdown
from orchestrator.report.table import summary_lines
from orchestrator.runlog.events import Event, read_events
from orchestrator.runlog.files import LineWriter
from tests.report.results import check, death, phone, run

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.report.result import RunResult

CONTROLS = "".join(map(chr, [*range(32), *range(0x7F, 0xA0), 0x202E, 0x2066, 0xFFFE, 0xD800]))
TEXTS = ("<script>alert(1)</script>", CONTROLS, "]]>&%0A::error::x", "x" * 1_000_000)
HARMLESS_BYTES = 40_000


def result_of(text: str) -> RunResult:
    checks = [check(result="fail", reason=text, value=text, launch=text, seq=1)]
    facts = {"alias": text, "model": text, "os": text, "explanation": text, "cause": text}
    return run(phone(death(checks=checks, **facts)))


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: repr(text[:9]))
def test_markdown_holds_no_markup_of_a_phone(text: str) -> None:
    page = summary_markdown(result_of(text))
    assert "<script" not in page
    assert not set(page) & set(CONTROLS) - {"\n"}
    assert len(page.encode()) < HARMLESS_BYTES


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: repr(text[:9]))
def test_a_terminal_gets_nothing_that_it_would_obey(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    result = result_of(text)
    lines = summary_lines(result.summary, [result.phones[0].verdict])
    assert not set("".join(lines)) & set(CONTROLS)
    assert len("".join(lines)) < HARMLESS_BYTES
    note(text)
    assert not set(capsys.readouterr().err) & set(CONTROLS) - {"\n"}


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: repr(text[:9]))
def test_an_annotation_is_one_line(text: str) -> None:
    lines = annotation_lines([result_of(text).phones[0].verdict], ())
    assert not any("\n" in line or "\r" in line for line in lines)
    assert all(line.startswith("::error title=") for line in lines)
    assert len("".join(lines)) < HARMLESS_BYTES


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: repr(text[:9]))
def test_the_log_stays_one_line_an_event(tmp_path: Path, text: str) -> None:
    path = tmp_path / "events.ndjson"
    speakable = text.replace("\ud800", "\ufffd")  # what decoding leaves of it
    with LineWriter(path) as writer:
        for number in range(2):
            writer.append_document(Event(at_s=number, kind="phase", facts={"name": speakable}))
    assert path.read_bytes().count(b"\n") == 2
    kept = [event.facts["name"] for event in read_events(path)]
    assert kept == [speakable] * 2
