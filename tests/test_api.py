"""The Python API: loaded when used, reads a run as its report does, refuses as `fleet` does."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import orchestrator
from orchestrator import load_run, run_soak
from orchestrator.domain.errors import RunDirectoryError, UsageError
from orchestrator.domain.outcome import Outcome
from orchestrator.report.remake import remake
from orchestrator.runlog.telemetry import Sample, Tokens
from tests.cli.test_startup import HEAVY
from tests.report.runs import write_run

if TYPE_CHECKING:
    from tests.report.runs import WrittenRun

DOCUMENT = Path(__file__).parents[1] / "docs" / "reference" / "python-api.md"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> WrittenRun:
    return write_run(tmp_path_factory.mktemp("runs") / "one")


def test_importing_the_package_loads_no_library() -> None:
    code = "import sys, orchestrator\nprint(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert HEAVY & set(done.stdout.split()) == set()


def test_a_loaded_run_says_what_its_report_says(written: WrittenRun) -> None:
    run = load_run(written.root)
    assert not written.paths.summary_json.exists()
    summary = remake(written.root)
    assert run.summary == summary
    assert (run.outcome, run.exit_code) == (summary.outcome, summary.exit_code)
    assert run.plan is not None
    assert [phone.cause for phone in run.phones] == [phone.cause for phone in summary.phones]


def test_records_are_typed_and_in_order(written: WrittenRun) -> None:
    phone = load_run(written.root).phones[0]
    records = list(phone.records())
    assert [record.seq for record in records] == sorted(record.seq for record in records)
    tokens = sum(len(record.ids) for record in records if isinstance(record, Tokens))
    samples = [record for record in records if isinstance(record, Sample)]
    assert tokens == 120
    assert samples


def test_checks_are_found_by_id(written: WrittenRun) -> None:
    phone = load_run(written.root).phones[0]
    assert phone.checks["budget.never-exceeded"].result == "pass"
    assert phone.outcome in set(Outcome)


def test_a_line_that_is_no_record_is_left_out(tmp_path: Path) -> None:
    broken = write_run(tmp_path / "two")
    before = list(load_run(broken.root).phones[0].records())
    with broken.device.telemetry.open("ab") as file:
        file.write(b'{"kind":"nonsense"}\n{"torn')
    assert list(load_run(broken.root).phones[0].records()) == before


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunDirectoryError, match="is not a run directory"):
        load_run(tmp_path)


def test_a_soak_that_does_not_begin_raises_what_fleet_says(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="unknown key, 'gait'"):
        run_soak(virtual=True, settings=["gait=1"], output=tmp_path)


def test_names_that_are_not_there_are_no_attributes() -> None:
    assert not hasattr(orchestrator, "solk")
    # Not `soak`: the package of that name would take its place as soon as something imports it.
    assert {"run_soak", "load_run"} <= set(dir(orchestrator))


def test_the_example_of_the_documentation_runs(
    written: WrittenRun, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    example = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)[0]
    (written.root.parent / "runs").mkdir(exist_ok=True)
    latest = written.root.parent / "runs" / "latest"
    latest.symlink_to(written.root)
    monkeypatch.chdir(written.root.parent)
    exec(compile(example, str(DOCUMENT), "exec"), {})  # noqa: S102 - our own documentation
    assert "trims:" in capsys.readouterr().out


@pytest.mark.deep
def test_a_soak_runs_and_is_returned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    settings = ["workload.decode_tokens_per_s=600", "harness.defect=never-trim"]
    settings += ["workload.ballast_from_token=600", "workload.ballast_to_token=1200"]
    settings += ["evidence.report_wait_s=5"]
    run = run_soak(virtual=True, duration="7s", settings=settings, output=tmp_path)
    assert run.outcome == Outcome.FAIL
    failed = {check.id for check in run.phones[0].checks.values() if check.result == "fail"}
    assert "budget.never-exceeded" in failed
