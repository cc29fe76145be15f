"""Runs on real phones and policies for tests of the sign-off."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from orchestrator.config.model import ReleaseBlock, ReleaseRequirement, Waiver
from orchestrator.report.remake import remake
from orchestrator.runlog.files import replace_file, write_document
from orchestrator.runlog.manifest import write_manifest
from tests.report.runs import PHONE, PLAN, ROWS, WrittenRun, write_run
from tests.verdict.host_side import device_of, encode

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tests.verdict.telemetry_spec import Row

MODEL, IOS, CHECK = "iPhone 15 Pro", "18.x", "trim.notice"
SHORT_H = 0.0001  # the tests' soaks take half a second


def requirement(**facts: object) -> ReleaseRequirement:
    plain = {"model": MODEL, "os": IOS, "min_hours": SHORT_H}
    return ReleaseRequirement.model_validate({**plain, **facts})


def waiver(**facts: object) -> Waiver:
    plain = {
        "model": MODEL,
        "check": CHECK,
        "ticket": "LLM-7",
        "owner": "Ada",
        "until": "2099-12-31",
    }
    return Waiver.model_validate({**plain, **facts})


def release(*waivers: Waiver, require: tuple[ReleaseRequirement, ...] = ()) -> ReleaseBlock:
    return ReleaseBlock(require=require or (requirement(),), waivers=waivers)


def swift(row: Row) -> Row:
    return {**row, "stand_in": False} if row["kind"] == "hello" else row


def without_notices(rows: Iterable[Row]) -> list[Row]:
    """Return what an app writes that shows no notice: `trim.notice` fails."""
    return [{**row, "shown": False} if row["kind"] == "notice" else row for row in rows]


def write_real_run(
    root: Path,
    rows: Iterable[Row] = ROWS,
    *,
    virtual: bool = False,
    app_sha256: str = PLAN.app.package_sha256,
) -> WrittenRun:
    """Write a sealed and judged run of the Swift app on one phone."""
    run = write_run(root)
    phone = structs.replace(PHONE, virtual=virtual)
    app = structs.replace(PLAN.app, kind="swift", package_sha256=app_sha256)
    run.rewrite_plan(phones=[phone], app=app, run_id=root.name)
    run.rewrite_run(virtual=virtual, run_id=root.name)
    write_document(run.device.device, structs.replace(device_of(), virtual=virtual))
    telemetry = b"".join(encode(swift(row) for row in rows))
    for path in (run.attempt.stream(1), run.attempt.journal(1), run.device.telemetry):
        replace_file(path, telemetry)
    write_manifest(run.root)
    remake(run.root)
    return run
