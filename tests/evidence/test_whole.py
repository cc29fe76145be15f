"""The short way through a whole report gives what the scanner gives, and takes no other file."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from orchestrator.evidence.parse import parse_reports, read_reports
from orchestrator.evidence.whole import whole_document
from tests.benchmarks.crash_readers import files
from tests.benchmarks.full_reports import full_crash, full_jetsam
from tests.evidence.factory import crash, jetsam, process, report

if TYPE_CHECKING:
    from pathlib import Path

FULL = {"jetsam": full_jetsam(), "crash": full_crash()}
SMALL = [jetsam(process(), process("b", reason=None)), crash(threads=[{"triggered": True}])]


def scanned(content: bytes, monkeypatch: pytest.MonkeyPatch) -> object:
    with monkeypatch.context() as patch:
        patch.setattr("orchestrator.evidence.parse.whole_document", lambda _: None)
        return parse_reports(content, "r")


@pytest.mark.parametrize("name", FULL)
def test_a_full_report_goes_the_short_way_and_reads_the_same(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert whole_document(FULL[name]) is not None
    assert parse_reports(FULL[name], "r") == scanned(FULL[name], monkeypatch)


def test_every_report_at_hand_reads_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, content in files().items():
        assert parse_reports(content, "r") == scanned(content, monkeypatch), name


def test_damaged_reports_read_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(7)
    for _ in range(600):
        content = bytearray(chance.choice(SMALL))
        for _ in range(chance.randint(1, 3)):
            place = chance.randrange(len(content))
            content[place : place + chance.randint(0, 2)] = chance.choice(
                [b"", b'"', b"{", b"]", b"\n", b"\xff", b"9", b"null", b","]
            )
        if chance.random() < 0.2:
            del content[chance.randrange(len(content)) :]
        damaged = bytes(content)
        assert parse_reports(damaged, "r") == scanned(damaged, monkeypatch), damaged


@pytest.mark.parametrize(
    "content",
    [
        jetsam(process()) + b"\n" + crash(),
        jetsam(process()).replace(b'"processes"', b'"processes": [], "processes"'),
        jetsam(process()) + b"\ntrailing",
        jetsam(process("Soak\xff")).replace(b"\\u00ff", b"\xff"),
        jetsam(None, process()),
        jetsam(process())[:-30],
        report("309", {"bug_type": "298", "pid": 5}),
        report("309", {"pid": float("nan")}),
        report("309", {"threads": [{"frames": [float("inf")], "triggered": True}]}),
        b"",
    ],
)
def test_what_is_not_plainly_whole_is_left_to_the_scanner(content: bytes) -> None:
    assert whole_document(content) is None


def test_a_file_that_is_too_long_for_the_short_way_is_read_in_chunks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.evidence.parse.LONGEST", 100)
    file = tmp_path / "a.ips"
    file.write_bytes(SMALL[0])
    assert list(read_reports(file, "a.ips")) == parse_reports(SMALL[0], "a.ips")
