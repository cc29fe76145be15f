"""`fleet prune` on real folders: it lists, and deletes only when told to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from orchestrator.cli.prune import prune
from orchestrator.domain.errors import UsageError
from orchestrator.runlog.documents import RunDocument
from orchestrator.runlog.files import write_document

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    output = tmp_path / "runs"
    for run_id in ("a", "b"):
        document = RunDocument(
            run_id=run_id, started_s=1.0, virtual=True, fleet_version="0", host="h",
            arguments=[], owner_pid=1, ended_s=2.0,
        )  # fmt: skip
        write_document(output / run_id / "run.json", document)
    (output / "latest").symlink_to("b")
    (output / "notes").mkdir()
    return output


def test_it_lists_and_deletes_nothing_unasked(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prune("1d", 0, runs, [], delete=False)
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["a", "b"]
    assert (runs / "a").exists()


def test_what_a_bundle_holds_survives(runs: Path, tmp_path: Path) -> None:
    bundle = tmp_path / "signoff-1.0"
    (bundle / "evidence" / "a").mkdir(parents=True)
    prune("1d", 0, runs, None, delete=True)
    assert (runs / "a").exists()
    assert not (runs / "b").exists()
    assert (runs / "notes").exists()


def test_an_age_that_is_none_is_refused(runs: Path) -> None:
    with pytest.raises(UsageError, match="no age"):
        prune("soon", 0, runs, [], delete=False)
