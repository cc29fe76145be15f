"""What the page of a run learns about the runs before it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from orchestrator.cli.lineage import last_green, reported
from orchestrator.history.reading import read_entry
from orchestrator.history.store import DATABASE_NAME, History
from orchestrator.report.last_green import recall
from orchestrator.report.remake import remake
from orchestrator.runlog.documents import RunDocument
from orchestrator.runlog.manifest import write_manifest
from tests.history.entries import phone, run
from tests.report.runs import PLAN, write_run
from tests.verdict.telemetry_spec import BOOT_S

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from orchestrator.history.entry import RunEntry

THIS = RunDocument(
    run_id="this",
    started_s=2e9,
    virtual=False,
    fleet_version="0",
    host="h",
    arguments=[],
    owner_pid=1,
)


def newest_green(*runs: RunEntry) -> str | None:
    green = last_green(runs, THIS)
    return green.run_id if green else None


def test_the_newest_green_run_is_taken() -> None:
    first, second = run(1), run(2)
    red = run(3, outcome="FAIL")
    assert newest_green(first, second, red) == second.run_id


def test_a_run_is_not_its_own_forerunner_nor_is_a_later_one() -> None:
    assert newest_green(run(1, run_id="this")) is None
    assert newest_green(run(1, started_s=3e9)) is None


def test_virtual_phones_say_nothing_about_real_ones() -> None:
    assert newest_green(run(1, phone(virtual="yes"))) is None


def test_the_page_tells_what_changed_since_the_recorded_green_run(tmp_path: Path) -> None:
    earlier = write_run(tmp_path / "earlier")
    earlier.rewrite_run(run_id="earlier", started_s=BOOT_S - 9000)
    write_manifest(earlier.root)
    remake(earlier.root)
    History(tmp_path / DATABASE_NAME).record(read_entry(earlier.root))
    later = write_run(tmp_path / "later")
    later.rewrite_plan(app=structs.replace(PLAN.app, package_sha256="ef" * 32))
    reported(later.root)
    green = recall(later.root)
    assert green is not None
    assert green.run_id == "earlier"
    page = later.paths.html.read_text()
    assert "app package" in page
    assert "cdcdcdcdcdcd" in page
    assert "efefefefefef" in page


def test_a_damaged_history_is_a_remark_and_the_page_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written = write_run(tmp_path / "run")
    write_manifest(written.root)
    (tmp_path / DATABASE_NAME).write_bytes(b"not a database" * 100)
    assert reported(written.root).outcome == "PASS"
    assert "does not know earlier runs" in capsys.readouterr().err
    assert "No earlier green run is known here." in written.paths.html.read_text()


def test_without_a_history_none_is_made(tmp_path: Path) -> None:
    written = write_run(tmp_path / "run")
    reported(written.root)
    assert not (tmp_path / DATABASE_NAME).exists()
