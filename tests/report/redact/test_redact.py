"""A redacted copy keeps what happened and loses who it was and what was said."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from msgspec import structs

from orchestrator.domain.errors import RunDirectoryError, UsageError
from orchestrator.report.page import html_page
from orchestrator.report.redact.copy import LeakError, redact_run
from orchestrator.report.redact.pseudonyms import Pseudonyms
from orchestrator.report.redact.values import Json, redacted
from orchestrator.report.remake import judge_run, remake
from orchestrator.report.rundir import read_run
from orchestrator.runlog.files import replace_file
from orchestrator.runlog.lines import read_lines
from orchestrator.runlog.manifest import differing_files, write_manifest
from tests.report.runs import APP, DIRECTORY, PHONE, UDID, WrittenRun, jetsam_report, write_run

if TYPE_CHECKING:
    from pathlib import Path

KEY = b"k" * 32
NAME = "Ada's iPhone <b>"
TOKEN_FIELDS = ("ids", "prompt_ids", "used_ids", "pin_ids", "end_ids")


@pytest.fixture
def run(tmp_path: Path) -> WrittenRun:
    written = write_run(tmp_path / "run")
    written.rewrite_plan(phones=[structs.replace(PHONE, name=NAME, tags=["ada-lab"])])
    report = json.loads(jetsam_report().split(b"\n", 1)[1])
    report["processes"] += [{"name": "AdasDiary", "pid": 9, "rpages": 5, "states": ["daemon"]}]
    report |= {"largestProcess": "AdasDiary", "crashReporterKey": "c0ffee", "path": "/Users/ada/x"}
    header = jetsam_report().split(b"\n", 1)[0]
    written.add_report("JetsamEvent.ips", header + b"\n" + json.dumps(report).encode())
    replace_file(written.attempt.console, b"the user said hello\nfleet-harness listening\n")
    replace_file(written.root / "config.resolved.yaml", f"expect: [{{udid: {UDID}}}]\n".encode())
    write_manifest(written.root)
    remake(written.root)
    return written


@pytest.fixture
def copy(run: WrittenRun, tmp_path: Path) -> Path:
    redact_run(run.root, tmp_path / "copy", key=KEY)
    return tmp_path / "copy"


def everything(root: Path) -> str:
    parts = [path.relative_to(root).as_posix() for path in root.rglob("*")]
    parts += [path.read_text(errors="replace") for path in root.rglob("*") if path.is_file()]
    return "\n".join(parts)


def telemetry(root: Path) -> list[dict[str, object]]:
    (path,) = root.glob("devices/*/telemetry.ndjson")
    return [json.loads(line.content) for line in read_lines(path)]


def test_no_name_udid_process_or_printed_text_is_left(copy: Path) -> None:
    text = everything(copy)
    for private in (
        UDID, UDID[-8:], PHONE.alias, NAME, "Ada", "AdasDiary", "c0ffee", "user said", "ada-lab"
    ):  # fmt: skip
        assert private not in text, private


def test_short_process_names_and_what_was_said_leave_the_page_too(
    run: WrittenRun, tmp_path: Path
) -> None:
    report = json.loads(jetsam_report().split(b"\n", 1)[1])
    report["processes"] += [{"name": "adx", "pid": 9, "rpages": 5, "reason": "vm-pageshortage"}]
    header = jetsam_report().split(b"\n", 1)[0]
    run.add_report("JetsamEvent.ips", header + b"\n" + json.dumps(report).encode())
    assert ">adx<" in html_page(judge_run(run.root))
    redact_run(run.root, tmp_path / "other", key=KEY)
    page = (tmp_path / "other" / "report" / "index.html").read_text()
    assert "Killed by jetsam" in page
    assert "adx" not in page
    assert "the user said hello" not in (tmp_path / "other" / "junit.xml").read_text()


def test_the_original_is_not_touched(run: WrittenRun, copy: Path) -> None:
    assert copy.is_dir()
    assert differing_files(run.root) == []


def test_the_app_under_test_keeps_its_name_and_the_kill_its_reason(copy: Path) -> None:
    (path,) = copy.glob("devices/*/attempts/1/reports/*.ips")
    body = json.loads(path.read_bytes().split(b"\n", 1)[1])
    ours, other = body["processes"]
    assert (ours["name"], ours["reason"]) == (APP, "per-process-limit")
    assert other["name"] == body["largestProcess"] == "process-1"
    assert body["path"] == "/Users/person/x"


def test_tokens_change_consistently_and_counts_stay(run: WrittenRun, copy: Path) -> None:
    meaning: dict[int, int] = {}
    for before, after in zip(telemetry(run.root), telemetry(copy), strict=True):
        for field in TOKEN_FIELDS:
            old, new = before.get(field), after.get(field)
            if isinstance(old, list) and isinstance(new, list):
                assert len(old) == len(new)
                for one, other in zip(old, new, strict=True):
                    assert meaning.setdefault(one, other) == other
    assert len(set(meaning.values())) == len(meaning)
    assert not any(old == new for old, new in meaning.items())


def test_everything_else_of_the_telemetry_stays(run: WrittenRun, copy: Path) -> None:
    touched = {*TOKEN_FIELDS, "bos_id", "text_hash"}
    for before, after in zip(telemetry(run.root), telemetry(copy), strict=True):
        assert {k: v for k, v in before.items() if k not in touched} == {
            k: v for k, v in after.items() if k not in touched
        }


def test_the_verdict_is_the_originals(run: WrittenRun, copy: Path) -> None:
    old = json.loads(run.paths.summary_json.read_bytes())
    new = json.loads((copy / "summary.json").read_bytes())
    assert new["outcome"] == old["outcome"]
    assert new["phones"][0]["checks"] == old["phones"][0]["checks"]
    assert new["phones"][0]["alias"] == "phone-1"
    page = (copy / "report" / "index.html").read_text()
    assert "phone-1" in page
    assert (copy / "junit.xml").exists()


def test_the_copy_is_sealed_and_names_its_original(run: WrittenRun, copy: Path) -> None:
    assert differing_files(copy) == []
    note = json.loads((copy / "redacted.json").read_bytes())
    assert len(note["original_manifest_sha256"]) == 64
    assert note["left_out"] == []
    assert run.paths.manifest.exists()


def test_a_copy_is_never_judged_or_signed_off(copy: Path) -> None:
    with pytest.raises(RunDirectoryError, match="redacted copy"):
        read_run(copy)


def test_files_that_nobody_understands_stay_at_home(run: WrittenRun, tmp_path: Path) -> None:
    run.add_report("MyApp.crash", b"Process: MyApp\nAda was here\n")
    (run.root / "core.bin").write_bytes(b"\x00Ada")
    (run.root / "odd.json").write_text("{not json Ada")
    document = redact_run(run.root, tmp_path / "copy")
    left = {entry.file.rpartition("/")[2] for entry in document.left_out}
    assert left == {"MyApp.crash", "core.bin", "odd.json"}
    assert "Ada" not in everything(tmp_path / "copy")


def test_a_torn_line_gives_its_length_and_not_its_text(run: WrittenRun, tmp_path: Path) -> None:
    with run.device.telemetry.open("ab") as file:
        file.write(b'{"kind":"tokens","text":"dear Ada')
    redact_run(run.root, tmp_path / "copy")
    assert telemetry(tmp_path / "copy")[-1] == {"redacted": "unreadable line of 33 bytes"}


def test_a_name_that_survives_leaves_no_copy(run: WrittenRun, tmp_path: Path) -> None:
    run.rewrite_plan(phones=[structs.replace(PHONE, alias="completed")])
    with pytest.raises(LeakError, match="no copy is left"):
        redact_run(run.root, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_a_folder_that_exists_is_not_written_into(run: WrittenRun, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="exists already"):
        redact_run(run.root, tmp_path)


def test_two_copies_share_no_token() -> None:
    assert Pseudonyms(b"a").token(5) != Pseudonyms(b"b").token(5)


def test_the_same_original_gets_the_same_stand_in() -> None:
    names = Pseudonyms(KEY)
    one, other = names.udid(UDID), names.udid("00008130-0000000000000BAD")
    assert names.udid(UDID) == one != other
    assert names.text(f"see {UDID}.") == f"see {one}."
    assert names.text("ask ada@example.com or 00:11:22:aa:bb:cc") == "ask mail-1 or address-1"


def test_hostile_values_do_not_break_it() -> None:
    names = Pseudonyms(KEY)
    hostile: dict[str, Json] = {
        "ids": [1, True, "x", None, [2]],
        "processes": "none",
        "name": "\ud800",
        "a b": 1.5,
    }
    changed = redacted(hostile, names, "app")
    assert isinstance(changed, dict)
    assert changed["ids"] == [names.token(1), True, "x", None, [names.token(2)]]
    assert DIRECTORY not in json.dumps(changed)
