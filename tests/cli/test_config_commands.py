"""`fleet config`, `fleet schema` and `fleet explain` as a person runs them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import yaml

from orchestrator.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path


def answer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str
) -> tuple[int, str, str]:
    monkeypatch.setattr("sys.argv", ["fleet", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    out, err = capsys.readouterr()
    return int(ended.value.code or 0), out, err


def test_all_mistakes_are_printed_with_their_place(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "lab.yaml"
    file.write_text("scenarioo: x\ngate: {min_battery_percent: 30m}\n")
    code, out, _ = answer(monkeypatch, capsys, "config", "check", str(file))
    assert code == 2
    assert [line.split(": ")[0] for line in out.splitlines()] == [f"{file}:1:1", f"{file}:2:8"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("scenario: nightli", "unknown scenario 'nightli'"),
        ("harness: {defect: no-such}", "unknown defect 'no-such'"),
        ("checks: {memory.drift: {max_mb: 1}}", "memory.drift has no limit 'max_mb'"),
        ("virtual: {faults: [{phone: vp-01, at_s: 1, kind: no-such}]}", "no-such"),
        ("workload: {min_prompt_ids: 900}", "workload.min_prompt_ids 900 is over"),
    ],
)
def test_what_a_soak_would_refuse_is_found_too(
    text: str,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    file = tmp_path / "lab.yaml"
    file.write_text(text)
    code, out, _ = answer(monkeypatch, capsys, "config", "check", str(file))
    assert code == 2
    assert said in out
    assert len(out.splitlines()) == 1
    assert out.startswith(f"{file}:1:1")


def test_a_file_in_order_exits_0(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "lab.yaml"
    file.write_text("scenario: nightly\n")
    assert answer(monkeypatch, capsys, "config", "check", str(file))[:2] == (
        0,
        f"{file}: in order\n",
    )


def test_show_prints_what_a_run_would_use(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, _ = answer(monkeypatch, capsys, "config", "show", "--set", "scenario=nightly")
    assert code == 0
    assert yaml.safe_load(out)["scenario"] == "nightly"


def test_the_schema_is_printed_or_written(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code, out, _ = answer(monkeypatch, capsys, "schema")
    assert code == 0
    assert "scenario" in json.loads(out)["properties"]
    target = tmp_path / "fleet.schema.json"
    assert answer(monkeypatch, capsys, "schema", "--output", str(target))[0] == 0
    assert target.read_text() == out
    nowhere = str(tmp_path / "no" / "x.json")
    code, _, err = answer(monkeypatch, capsys, "schema", "--output", nowhere)
    assert (code, "No such file" in err) == (2, True)


def test_explain_lists_words_prints_pages_and_refuses_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = answer(monkeypatch, capsys, "explain")
    assert code == 0
    assert "trim.on-schedule" in out
    code, out, _ = answer(monkeypatch, capsys, "explain", "trim.notice", "4")
    assert code == 0
    assert "trim.notice  (check)" in out
    assert "4  (exit code)" in out
    code, _, err = answer(monkeypatch, capsys, "explain", "trim.notise")
    assert code == 2
    assert "trim.notice" in err
