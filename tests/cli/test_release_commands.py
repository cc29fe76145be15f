"""`fleet history`, `compare`, `baseline`, `signoff`, `redact`, `report --github` as typed."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from orchestrator.cli.main import main
from orchestrator.history.reading import read_entry
from orchestrator.history.store import DATABASE_NAME, History
from orchestrator.report.remake import remake
from tests.report.runs import write_run
from tests.report.signoff.releases import without_notices, write_real_run
from tests.verdict.telemetry_factory import App
from tests.verdict.telemetry_spec import Spec

if TYPE_CHECKING:
    from pathlib import Path


class Fleet:
    """Runs `fleet` in this process."""

    def __init__(self, patch: pytest.MonkeyPatch, captured: pytest.CaptureFixture[str]) -> None:
        self._patch, self._captured = patch, captured
        self.said = ""

    def __call__(self, *words: object) -> int:
        self._patch.setattr("sys.argv", ["fleet", *map(str, words)])
        try:
            main()
            code: object = 0
        except SystemExit as exit_:
            code = exit_.code or 0
        printed = self._captured.readouterr()
        self.said = printed.out + printed.err
        assert isinstance(code, int), code
        return int(code)


@pytest.fixture
def fleet(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Fleet:
    return Fleet(monkeypatch, capsys)


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    remake(write_run(tmp_path / "runs" / "run").root)
    return tmp_path / "runs"


def test_history_lists_runs_phones_and_checks(fleet: Fleet, runs: Path) -> None:
    assert fleet("history", "--runs", runs) == 0
    assert "nothing is recorded" in fleet.said
    assert not (runs / DATABASE_NAME).exists()
    assert fleet("history", "--runs", runs, "--rebuild") == 0
    assert "recorded 1 run\n" in fleet.said
    assert fleet("history", "memory.peak", "--runs", runs) == 0
    assert "[p]" in fleet.said


def test_a_baseline_is_set_shown_and_compared(fleet: Fleet, runs: Path) -> None:
    assert fleet("baseline", "set", "main", runs / "run", "--runs", runs) == 0
    assert fleet("baseline", "show", "--runs", runs) == 0
    assert fleet.said.startswith("main:\n  run ")
    assert fleet("compare", runs / "run", "main", "--runs", runs) == 4
    assert "inconclusive" in fleet.said
    assert fleet("baseline", "show", "other", "--runs", runs) == 2
    assert fleet("baseline", "set", "a b", runs / "run", "--runs", runs) == 2


def test_a_regression_exits_1_and_other_stamps_exit_4(fleet: Fleet, runs: Path) -> None:
    from dataclasses import replace

    history = History(runs / DATABASE_NAME)
    entry = read_entry(runs / "run")
    (phone,) = entry.phones
    for number in range(5):
        faster = replace(phone, measures={"tokens_per_s": 1e6 + number})
        history.record(replace(entry, run_id=f"base-{number}", phones=(faster,)))
    history.set_baseline("main", [f"base-{number}" for number in range(5)])
    assert fleet("compare", runs / "run", "main", "--runs", runs) == 1
    assert "REGRESSION in 1 of" in fleet.said
    other = replace(phone, stamps=replace(phone.stamps, os_build="23A1"))
    history.record(replace(entry, run_id="other", phones=(other,)))
    assert fleet("compare", runs / "run", "other", "--runs", runs) == 4
    assert "OS build" in fleet.said


def test_a_release_is_signed_and_verified_and_its_manifest_is_sha256sums(
    fleet: Fleet, tmp_path: Path
) -> None:
    written = write_real_run(tmp_path / "run-1")
    key, bundle, policy = tmp_path / "key.pem", tmp_path / "bundle", tmp_path / "policy.yaml"
    policy.write_text("require: [{model: iPhone 15 Pro, os: 18.x, min_hours: 0.0001}]\n")
    assert fleet("signoff", "keygen", "--key", key) == 0
    words = (written.root, "--release", "2.3.0", "--require", policy, "--key", key)
    assert fleet("signoff", *words, "--out", bundle) == 0
    verify = ("signoff", "verify", bundle, "--public-key", f"{key}.pub")
    assert fleet(*verify) == 0
    assert "valid: harness 2.3.0 PASSED" in fleet.said
    if shutil.which("sha256sum"):
        subprocess.run(["sha256sum", "-c", "--quiet", "MANIFEST.sha256"], cwd=bundle, check=True)
    (bundle / "signoff.html").write_text("")
    assert fleet(*verify) == 1
    assert "changed: signoff.html" in fleet.said


def test_a_refused_release_lists_what_is_missing(fleet: Fleet, tmp_path: Path) -> None:
    key, policy = tmp_path / "key.pem", tmp_path / "policy.yaml"
    policy.write_text("require: [{model: iPhone 16, os: 18.x, min_hours: 8}]\n")
    fleet("signoff", "keygen", "--key", key)
    good = write_real_run(tmp_path / "run-1").root
    bad = write_real_run(tmp_path / "run-2", without_notices(App(Spec(stop_after=120)).run())).root
    rest = ("--release", "2", "--require", policy, "--key", key, "--out", tmp_path / "bundle")
    assert fleet("signoff", good, *rest) == 4
    assert "missing cell: iPhone 16, iOS 18.x" in fleet.said
    assert fleet("signoff", bad, *rest) == 1
    assert "failed check: trim.notice" in fleet.said
    assert not (tmp_path / "bundle").exists()
    assert fleet("signoff", good, "--release", "2", "--require", policy, "--key", policy) == 2


def test_a_redacted_copy_is_written_and_not_judged(
    fleet: Fleet, runs: Path, tmp_path: Path
) -> None:
    assert fleet("redact", runs / "run", "--out", tmp_path / "copy") == 0
    assert fleet("report", tmp_path / "copy") == 2
    assert "redacted copy" in fleet.said


def test_github_gets_annotations_and_the_summary(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = without_notices(App(Spec(stop_after=120)).run())
    written = write_real_run(tmp_path / "run-1", rows)
    summary = tmp_path / "step.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    assert fleet("report", written.root, "--github") == 0
    assert "::error title=trim.notice on desk-15pro" in fleet.said
    assert summary.read_bytes() == written.paths.summary_md.read_bytes()
