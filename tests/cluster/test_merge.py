"""`fleet merge`: run directories of hosts that share nothing become one run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec import structs

from orchestrator.cli.merging import merged
from orchestrator.domain.errors import RunDirectoryError, UsageError
from orchestrator.history.reading import read_entry
from orchestrator.report.remake import remake
from orchestrator.runlog.documents import PlanDocument, RunDocument
from orchestrator.runlog.events import read_events
from orchestrator.runlog.files import read_document, write_document
from orchestrator.runlog.layout import RunPaths
from orchestrator.runlog.manifest import differing_files, write_manifest
from tests.report.runs import DIRECTORY, PHONE, PLAN, write_run

if TYPE_CHECKING:
    from pathlib import Path

OTHER = structs.replace(
    PHONE, udid="00008140-00000000000000FF", alias="other", directory="other-000000FF"
)


@pytest.fixture
def parts(tmp_path: Path) -> list[str]:
    """Two runs of one phone each, sealed, as `NAME=RUN`."""
    first, second = write_run(tmp_path / "a" / "run-a"), write_run(tmp_path / "b" / "run-b")
    second.rewrite_plan(phones=[OTHER])
    second.rewrite_run(run_id="run-b")
    second.device.root.rename(second.root / "devices" / OTHER.directory)
    for run in (first, second):
        write_manifest(run.root)
    return [f"mini-1={first.root}", f"mini-2={second.root}"]


def place(part: str) -> RunPaths:
    from pathlib import Path

    return RunPaths(Path(part.partition("=")[2]))


def test_the_joined_run_says_what_its_parts_said(parts: list[str], tmp_path: Path) -> None:
    alone = [remake(place(part).root) for part in parts]
    root = merged(parts, tmp_path / "runs")
    together = remake(root)
    assert together.outcome == "PASS"
    assert [phone.host for phone in together.phones] == ["mini-1", "mini-2"]
    for phone, single in zip(together.phones, alone, strict=True):
        assert phone.checks == single.phones[0].checks
        assert phone.outcome == single.phones[0].outcome
    assert differing_files(root) == []
    assert (tmp_path / "runs" / "latest").resolve() == root.resolve()
    assert [phone.host for phone in read_entry(root).phones] == ["mini-1", "mini-2"]


def test_the_parts_stay_as_they_are_and_are_named(parts: list[str], tmp_path: Path) -> None:
    root = merged(parts, tmp_path / "runs")
    assert all(differing_files(place(part).root) == [] for part in parts)
    document = read_document(RunPaths(root).run, RunDocument)
    assert [(part.host, part.run_id) for part in document.parts] == [
        ("mini-1", "run"),
        ("mini-2", "run-b"),
    ]
    assert {event.facts.get("host") for event in read_events(RunPaths(root).events)} == {
        "mini-1",
        "mini-2",
    }


def test_an_edited_record_stays_a_finding(parts: list[str], tmp_path: Path) -> None:
    telemetry = place(parts[0]).device(DIRECTORY).telemetry
    telemetry.write_bytes(telemetry.read_bytes().replace(b'"trims":', b'"trims": '))
    root = merged(parts, tmp_path / "runs")
    assert differing_files(root) == [f"devices/{DIRECTORY}/telemetry.ndjson"]
    checks = {
        phone.alias: {check.id: check.result for check in phone.checks}
        for phone in remake(root).phones
    }
    assert checks[PHONE.alias]["telemetry.complete"] == "fail"
    assert checks["other"]["telemetry.complete"] == "pass"


def test_without_a_name_a_part_is_called_by_its_run(parts: list[str], tmp_path: Path) -> None:
    root = merged([str(place(part).root) for part in parts], tmp_path / "runs")
    plan = read_document(RunPaths(root).plan, PlanDocument)
    assert [phone.host for phone in plan.phones] == ["run-a", "run-b"]


def test_the_same_phone_twice_is_refused_and_nothing_is_made(
    parts: list[str], tmp_path: Path
) -> None:
    again = f"mini-3={place(parts[0]).root}"
    with pytest.raises(UsageError, match="is in two parts: mini-1 and mini-3"):
        merged([parts[0], again], tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


def test_another_app_is_refused(parts: list[str], tmp_path: Path) -> None:
    app = structs.replace(PLAN.app, package_sha256="1" * 64)
    write_document(place(parts[1]).plan, structs.replace(PLAN, phones=[OTHER], app=app))
    with pytest.raises(UsageError, match="mini-1 and mini-2 cannot be joined: they differ in app"):
        merged(parts, tmp_path / "runs")


def test_one_run_and_no_run_are_refused(parts: list[str], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="two runs or more"):
        merged(parts[:1], tmp_path / "runs")
    with pytest.raises(RunDirectoryError, match="is not a run directory"):
        merged([parts[0], f"mini-2={tmp_path / 'nothing'}"], tmp_path / "runs")
