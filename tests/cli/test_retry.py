"""`fleet retry` of a run whose app was given: it wants the app again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from orchestrator.cli.retry import Only, _options
from orchestrator.domain.errors import UsageError
from orchestrator.runlog.documents import RunDocument, SummaryDocument, SummaryPhone
from orchestrator.runlog.files import write_document
from orchestrator.runlog.layout import RunPaths
from tests.verdict.host_side import plan_of
from tests.verdict.telemetry_spec import FULL

if TYPE_CHECKING:
    from pathlib import Path


def ended_run(folder: Path, kind: str) -> Path:
    paths, plan = RunPaths(folder), plan_of(FULL)
    run = RunDocument(
        run_id=plan.run_id,
        started_s=1.0,
        virtual=False,
        fleet_version="0",
        host="test",
        arguments=[],
        owner_pid=1,
        ended_s=2.0,
    )
    phone = plan.phones[0]
    lost = SummaryPhone(
        udid=phone.udid,
        alias=phone.alias,
        model=phone.model,
        product_type=phone.product_type,
        os=phone.os,
        outcome="ERROR",
        cause="device_lost",
        checks=[],
    )
    summary = SummaryDocument(
        run_id=plan.run_id, outcome="ERROR", exit_code=4, virtual=False, phones=[lost]
    )
    app = msgspec.structs.replace(plan.app, kind=kind)
    write_document(paths.run, run)
    write_document(paths.plan, msgspec.structs.replace(plan, app=app))
    write_document(paths.summary_json, summary)
    return folder


def test_a_run_with_a_given_app_is_retried_with_it_alone(tmp_path: Path) -> None:
    run, ipa = ended_run(tmp_path, "supplied"), tmp_path / "app.ipa"
    with pytest.raises(UsageError, match="was given its app with --ipa"):
        _options(run, Only.ERROR, tmp_path, wait=False, ipa=None)
    options = _options(run, Only.ERROR, tmp_path, wait=False, ipa=ipa)
    assert options is not None
    assert (options.ipa, options.bundle_id) == (ipa, plan_of(FULL).app.bundle_id)


def test_a_run_with_our_own_app_takes_none(tmp_path: Path) -> None:
    run = ended_run(tmp_path, "swift")
    with pytest.raises(UsageError, match="was not given an app"):
        _options(run, Only.ERROR, tmp_path, wait=False, ipa=tmp_path / "app.ipa")
    options = _options(run, Only.ERROR, tmp_path, wait=False, ipa=None)
    assert options is not None
    assert options.bundle_id is None
