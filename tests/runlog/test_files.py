from pathlib import Path

import msgspec
import pytest

from orchestrator.domain.errors import RunDirectoryError
from orchestrator.runlog.documents import RunDocument
from orchestrator.runlog.events import Event, read_events
from orchestrator.runlog.files import LineWriter, read_document, replace_file, write_document
from orchestrator.runlog.lines import read_lines
from orchestrator.runlog.manifest import differing_files, write_manifest

RUN = RunDocument(
    run_id="r",
    started_s=1.0,
    virtual=True,
    fleet_version="0",
    host="h",
    arguments=[],
    owner_pid=1,
)


def test_a_document_reads_back_and_carries_its_schema(tmp_path: Path) -> None:
    write_document(tmp_path / "run.json", RUN)
    assert read_document(tmp_path / "run.json", RunDocument) == RUN
    assert msgspec.json.decode((tmp_path / "run.json").read_bytes())["schema"] == 1


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"run_id": 3}', b"\xff"])
def test_a_damaged_document_is_named(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_bytes(content)
    with pytest.raises(RunDirectoryError, match=r"run\.json"):
        read_document(tmp_path / "run.json", RunDocument)


def test_a_missing_document_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunDirectoryError, match="No such file"):
        read_document(tmp_path / "run.json", RunDocument)


def test_replacing_a_file_leaves_nothing_else_behind(tmp_path: Path) -> None:
    replace_file(tmp_path / "a" / "x", b"1")
    replace_file(tmp_path / "a" / "x", b"2")
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["x"]
    assert (tmp_path / "a" / "x").read_bytes() == b"2"


def test_lines_are_on_disk_as_soon_as_they_are_written(tmp_path: Path) -> None:
    writer = LineWriter(tmp_path / "x.ndjson")
    writer.append(b'{"a":1}')
    assert (tmp_path / "x.ndjson").read_bytes() == b'{"a":1}\n'
    writer.close()


def test_a_writer_ends_the_torn_line_of_a_killed_one(tmp_path: Path) -> None:
    (tmp_path / "x.ndjson").write_bytes(b'{"a":1}\n{"b"')
    with LineWriter(tmp_path / "x.ndjson") as writer:
        writer.append(b'{"c":1}\n')
    assert (tmp_path / "x.ndjson").read_bytes() == b'{"a":1}\n{"b"\n{"c":1}\n'


def test_the_reader_marks_a_torn_last_line(tmp_path: Path) -> None:
    (tmp_path / "x.ndjson").write_bytes(b"one\ntwo")
    lines = list(read_lines(tmp_path / "x.ndjson"))
    assert [(line.number, line.content, line.torn) for line in lines] == [
        (1, b"one\n", False),
        (2, b"two", True),
    ]
    assert list(read_lines(tmp_path / "absent.ndjson")) == []


def test_damaged_events_are_left_out(tmp_path: Path) -> None:
    with LineWriter(tmp_path / "events.ndjson") as writer:
        writer.append_document(Event(at_s=1.0, kind="launched", facts={"pid": 7}))
        writer.append(b"garbage")
        writer.append(b'{"at_s":2.0,"kind":"app_exited"')
    kinds = [event.kind for event in read_events(tmp_path / "events.ndjson")]
    assert kinds == ["launched"]


def test_a_manifest_finds_changed_missing_and_new_evidence(tmp_path: Path) -> None:
    for name in ("run.json", "plan.json", "events.ndjson"):
        (tmp_path / name).write_text(name)
    assert differing_files(tmp_path) is None
    write_manifest(tmp_path)
    assert differing_files(tmp_path) == []
    (tmp_path / "run.json").write_text("changed")
    (tmp_path / "plan.json").unlink()
    (tmp_path / "new.json").write_text("new")
    assert differing_files(tmp_path) == ["new.json", "plan.json", "run.json"]


def test_derived_files_are_not_evidence_and_a_manifest_is_never_rewritten(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("x")
    write_manifest(tmp_path)
    before = (tmp_path / "MANIFEST.sha256").read_bytes()
    (tmp_path / "report").mkdir()
    for name in ("summary.json", "junit.xml", "report/index.html"):
        (tmp_path / name).write_text("derived")
    (tmp_path / "run.json").write_text("y")
    write_manifest(tmp_path)
    assert (tmp_path / "MANIFEST.sha256").read_bytes() == before
    assert differing_files(tmp_path) == ["run.json"]
