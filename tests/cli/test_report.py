"""`fleet report RUN` as a person calls it on runs of all kinds."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from orchestrator.cli.living import resolve_ended
from orchestrator.cli.report import report
from orchestrator.domain.errors import RunDirectoryError, UsageError
from orchestrator.history.store import DATABASE_NAME, History
from orchestrator.soak.locks import Claim, LockKey, phones_held
from tests.report.runs import write_run

if TYPE_CHECKING:
    from pathlib import Path


def test_a_run_that_goes_on_is_not_reported_as_aborted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locks = tmp_path / "locks"
    monkeypatch.setenv("FLEET_LOCK_DIR", str(locks))
    run = write_run(tmp_path / "run")
    run.rewrite_run(run_id="r", ended_s=None, owner_pid=os.getpid())
    with phones_held([LockKey("u", "a")], Claim("r", 60.0), folder=locks):
        with pytest.raises(UsageError, match=r"still goes on.*fleet watch"):
            report(run.root)
        history = History(tmp_path / DATABASE_NAME)
        with pytest.raises(UsageError, match=r"still goes on.*fleet watch.*fleet stop"):
            resolve_ended(history, str(run.root))
        assert not run.paths.summary_json.exists()
    with pytest.raises(RunDirectoryError, match=r"no summary\.json.*fleet report"):
        resolve_ended(history, str(run.root))
    report(run.root)  # its process is gone: what it left is reported
    assert run.paths.summary_json.exists()


def test_times_beyond_the_calendar_are_named(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    run.rewrite_run(started_s=1e22)
    with pytest.raises(RunDirectoryError, match=r"run\.json: not a RunDocument.*started_s"):
        report(run.root)


@pytest.mark.parametrize("directory", ["../../away", "/away", "..", "a/b", "a\0b", "", "a\n"])
def test_a_plan_leads_to_no_folder_elsewhere(tmp_path: Path, directory: str) -> None:
    run = write_run(tmp_path / "runs" / "run")
    plan = run.paths.plan.read_text()
    known = run.device.root.name
    hostile = directory.replace("\0", "\\u0000").replace("\n", "\\n")
    assert plan.count(f'"{known}"') == 1
    run.paths.plan.write_text(plan.replace(f'"{known}"', f'"{hostile}"'))
    with pytest.raises(RunDirectoryError, match=r"plan\.json: not a PlanDocument.*directory"):
        report(run.root)
    assert not list(tmp_path.rglob("away"))
