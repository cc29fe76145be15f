"""`fleet crashlog parse` as a person or a script calls it."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from orchestrator.cli import crashlog
from orchestrator.cli.main import main
from tests.evidence.factory import APP, FIXTURES, crash, jetsam, process
from tests.evidence.make_dsym import DSYM, DSYM_UUID

if TYPE_CHECKING:
    from pathlib import Path


def printed(*arguments: str | Path) -> str:
    result = CliRunner().invoke(crashlog.app, ["parse", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result.stdout


def listed(*arguments: str | Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(printed(*arguments, "--json"))
    return rows


def test_files_and_folders_become_one_list() -> None:
    folder, file = FIXTURES / "J09_same_incident", FIXTURES / "C03_swift_fatal_asi_list.ips"
    assert [row["kind"] for row in listed(folder, file)] == ["jetsam", "crash"]


def test_the_digest_says_how_many_copies_it_leaves_out() -> None:
    folder = FIXTURES / "J09_same_incident"
    copies = len(list(folder.iterdir())) - 1
    noun = "copy" if copies == 1 else "copies"
    assert printed(folder).endswith(f"; {copies} {noun} of the same incident not listed\n")


def test_nothing_is_an_empty_list(tmp_path: Path) -> None:
    assert listed(tmp_path) == []
    assert printed(tmp_path) == "0 reports\n"


def test_of_a_run_directory_only_the_phones_reports_are_read(tmp_path: Path) -> None:
    reports = tmp_path / "devices" / "bench-01-00000001" / "attempts" / "1" / "reports"
    reports.mkdir(parents=True)
    (reports / "JetsamEvent.ips").write_bytes(jetsam(process(pid=400)))
    for name in ("run.json", "summary.md", "devices/bench-01-00000001/verdict.json"):
        (tmp_path / name).write_text("{}")
    assert [row["kind"] for row in listed(tmp_path)] == ["jetsam"]
    assert printed(tmp_path) == printed(reports)


def test_the_app_the_pid_and_the_product_are_asked_about(tmp_path: Path) -> None:
    path = tmp_path / "x.beta"
    path.write_bytes(jetsam(process(pid=400), process(pid=501, reason=None), product="iPhone15,3"))
    (row,) = listed(path, "--app", APP, "--pid", "501", "--product", "iPhone16,1")
    assert (row["app_killed"], row["ignored"]) == (False, True)


def test_the_digest_has_no_control_characters() -> None:
    text = printed(FIXTURES)
    assert "\x1b" not in text
    assert all(line.isprintable() for line in text.splitlines())


def test_hostile_names_are_escaped_in_the_list() -> None:
    text = printed(FIXTURES / "J22_names_with_xml_hostile_chars.ips", "--json")
    assert text.isascii()
    assert "\\u001b[31m" in text


def test_a_missing_path_is_a_usage_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["fleet", "crashlog", "parse", "/nowhere", "--json"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert capsys.readouterr().err == "/nowhere: no such file or folder\n"


def test_crashes_are_named_from_a_dsym(tmp_path: Path) -> None:
    path = tmp_path / "crash.ips"
    path.write_bytes(
        crash(
            threads=[{"triggered": True, "frames": [{"imageIndex": 0, "imageOffset": 16}]}],
            usedImages=[{"name": "Soak", "uuid": str(DSYM_UUID)}],
        )
    )
    (row,) = listed(path, "--dsym", DSYM)
    assert row["frames"] == ["decode (/build/soak.c:5)"]
    assert "    at decode (/build/soak.c:5)" in printed(path, "--dsym", DSYM)
    assert "frames" not in listed(path)[0]


def test_a_bad_dsym_is_a_usage_error(tmp_path: Path) -> None:
    result = CliRunner().invoke(crashlog.app, ["parse", str(tmp_path), "--dsym", str(tmp_path)])
    assert "cannot be read" in str(result.exception)
