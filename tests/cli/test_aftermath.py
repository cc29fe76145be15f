"""What follows a run never takes the run back: history, gate and webhooks fail into remarks."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from msgspec import structs

from orchestrator.cli import aftermath
from orchestrator.cli.aftermath import after_run
from orchestrator.config.load import validate
from orchestrator.config.position import parse_yaml
from orchestrator.domain.outcome import ExitCode
from orchestrator.history.reading import read_entry
from orchestrator.history.store import DATABASE_NAME, History
from orchestrator.report.remake import remake
from orchestrator.report.webhook import Delivery, Webhook
from orchestrator.runlog.manifest import write_manifest
from tests.report.runs import WrittenRun, write_run

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.config.model import FleetConfig
    from orchestrator.runlog.documents import SummaryDocument


@pytest.fixture
def run(tmp_path: Path) -> WrittenRun:
    run = write_run(tmp_path / "runs" / "one")
    write_manifest(run.root)
    return run


@pytest.fixture
def summary(run: WrittenRun) -> SummaryDocument:
    return remake(run.root)


def configured(text: str = "") -> FleetConfig:
    return validate(parse_yaml(text, "fleet.yaml"))


def contents(run: WrittenRun) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in run.root.rglob("*") if p.is_file()}


def test_a_run_is_recorded_beside_the_run_directories(
    run: WrittenRun, summary: SummaryDocument
) -> None:
    assert after_run(run.root, summary, configured()) is ExitCode.OK
    (entry,) = History(run.root.parent / DATABASE_NAME).runs()
    assert entry == read_entry(run.root)


def test_a_damaged_history_is_a_remark_and_the_run_stays(
    run: WrittenRun, summary: SummaryDocument, capsys: pytest.CaptureFixture[str]
) -> None:
    (run.root.parent / DATABASE_NAME).write_bytes(b"junk" * 2000)
    before = contents(run)
    assert after_run(run.root, summary, configured()) is ExitCode.OK
    assert contents(run) == before
    assert "fleet history --rebuild" in capsys.readouterr().err


def test_a_locked_history_is_a_remark_and_the_run_stays(
    run: WrittenRun,
    summary: SummaryDocument,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(aftermath, "History", lambda path: History(path, lock_wait_s=0.01))
    database = run.root.parent / DATABASE_NAME
    History(database).runs()
    before = contents(run)
    with closing(sqlite3.connect(database, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert after_run(run.root, summary, configured()) is ExitCode.OK
    assert contents(run) == before
    assert "try again" in capsys.readouterr().err


def with_baseline(run: WrittenRun, factor: float) -> None:
    """Make a baseline of four runs like this one, with so many times its footprint."""
    history = History(run.root.parent / DATABASE_NAME)
    entry = read_entry(run.root)
    (phone,) = entry.phones
    for number in range(4):
        bytes_ = phone.measures["footprint_peak_bytes"] * factor * (1 + number / 1000)
        like = replace(phone, measures={"footprint_peak_bytes": bytes_})
        history.record(replace(entry, run_id=f"base-{number}", phones=(like,)))
    history.set_baseline("main", [f"base-{number}" for number in range(4)])


@pytest.mark.parametrize(
    ("factor", "code"), [(1.0, ExitCode.OK), (0.5, ExitCode.PRODUCT_FAILED), (2.0, ExitCode.OK)]
)
def test_the_gate_decides_the_exit_code(
    run: WrittenRun,
    summary: SummaryDocument,
    capsys: pytest.CaptureFixture[str],
    factor: float,
    code: ExitCode,
) -> None:
    with_baseline(run, factor)
    gate = configured("regression: {baseline: main}\n")
    assert after_run(run.root, summary, gate) is code
    assert "regression gate against main" in capsys.readouterr().err


def test_a_gate_that_cannot_tell_fails_only_where_it_is_told_to(
    run: WrittenRun, summary: SummaryDocument, capsys: pytest.CaptureFixture[str]
) -> None:
    loose = configured("regression: {baseline: nowhere}\n")
    strict = configured("regression: {baseline: nowhere, inconclusive: fail}\n")
    assert after_run(run.root, summary, loose) is ExitCode.OK
    assert after_run(run.root, summary, strict) is ExitCode.INCONCLUSIVE
    failed = structs.replace(summary, outcome="FAIL", exit_code=1)
    assert after_run(run.root, failed, strict) is ExitCode.PRODUCT_FAILED
    assert "nowhere is no baseline" in capsys.readouterr().err


def test_an_interrupted_run_is_recorded_and_not_gated(
    run: WrittenRun, summary: SummaryDocument
) -> None:
    with_baseline(run, 0.5)
    aborted = structs.replace(summary, outcome="ABORTED", exit_code=130)
    gate = configured("regression: {baseline: main}\n")
    assert after_run(run.root, aborted, gate) is ExitCode.SIGINT


def test_a_webhook_that_fails_is_a_remark_without_its_address(
    run: WrittenRun,
    summary: SummaryDocument,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[tuple[Webhook, str]] = []

    def refuse(webhook: Webhook, _body: bytes, delivery_id: str) -> Delivery:
        told.append((webhook, delivery_id))
        return Delivery(webhook.host, 3, "answered 503")

    monkeypatch.setattr(aftermath, "deliver", refuse)
    monkeypatch.setenv("HOOK", "https://chat.example/secret-path")
    monkeypatch.setenv("HOOK_SECRET", "s3cret")
    config = configured("notify: [{webhook: '${HOOK}', secret: '${HOOK_SECRET}'}]\n")
    assert after_run(run.root, summary, config) is ExitCode.OK
    assert told == [(Webhook("https://chat.example/secret-path", "s3cret"), summary.run_id)]
    said = capsys.readouterr().err
    assert "chat.example was not told: answered 503" in said
    assert "secret-path" not in said


def test_without_its_environment_nobody_is_told_unsigned(
    run: WrittenRun, summary: SummaryDocument, capsys: pytest.CaptureFixture[str]
) -> None:
    config = configured("notify: [{webhook: 'http://127.0.0.1:9/x', secret: '${NOT_SET_HERE}'}]\n")
    assert after_run(run.root, summary, config) is ExitCode.OK
    assert "${NOT_SET_HERE} is not set" in capsys.readouterr().err
