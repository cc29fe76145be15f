"""The main job: a clean run passes, and what it leaves behind is the evidence it should be."""

from __future__ import annotations

import hashlib
import shutil
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

import pytest

from tests.end_to_end.fleet_process import (
    HAS_SWIFT,
    FinishedRun,
    kinds,
    read_json,
    records,
    run_fleet,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

MODELS = {"iPhone 14", "iPhone 15", "iPhone 15 Pro", "iPhone 16"}
pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def clean(quick_runs: Mapping[str, FinishedRun]) -> FinishedRun:
    return quick_runs["clean"]


def test_a_clean_pipeline_passes_on_every_phone(clean: FinishedRun) -> None:
    assert clean.exit_code == 0, clean.stdout + clean.stderr
    assert clean.summary["outcome"] == "PASS"
    assert set(clean.phones) == MODELS
    assert {phone["cause"] for phone in clean.phones.values()} == {"completed"}


def test_every_phone_trimmed_three_times_and_evicted_on_a_warning_of_the_kernel(
    clean: FinishedRun,
) -> None:
    for device in clean.devices():
        assert kinds(device)["trim"] >= 3
        warnings = {r["n"] for r in records(device) if r["kind"] == "memory_warning"
                    and r["origin"] == "kernel"}  # fmt: skip
        evictions = [r for r in records(device) if r["kind"] == "evict"]
        assert any(set(eviction["warnings"]) & warnings for eviction in evictions)


def test_both_memory_classes_chose_their_own_budget_and_quantization(clean: FinishedRun) -> None:
    chosen = {}
    for device in clean.devices():
        hello = records(device)[0]
        chosen[hello["device"]] = (hello["budget"], hello["quantization"])
    assert chosen == {
        "iPhone14,7": (1024, "int4"),
        "iPhone15,4": (1024, "int4"),
        "iPhone16,1": (2048, "int8"),
        "iPhone17,3": (2048, "int8"),
    }


def test_every_generated_token_was_proven(clean: FinishedRun) -> None:
    for device in clean.devices():
        generated = sum(len(r["ids"]) for r in records(device) if r["kind"] == "tokens")
        checks = {check["id"]: check for check in read_json(device / "verdict.json")["checks"]}
        assert generated > 1000
        assert (checks["context.proven"]["result"], checks["context.proven"]["value"]) == (
            "pass",
            generated,
        )


def test_the_app_is_the_swift_one_where_there_is_a_toolchain(clean: FinishedRun) -> None:
    stand_in = {records(device)[0]["stand_in"] for device in clean.devices()}
    assert stand_in == {not HAS_SWIFT}
    assert ("stand-in" in clean.stderr) is not HAS_SWIFT


def test_the_summary_has_exactly_the_fixed_keys(clean: FinishedRun) -> None:
    assert list(clean.summary) == [
        "schema", "run_id", "outcome", "exit_code", "virtual", "phones",
    ]  # fmt: skip
    assert clean.summary["schema"] == 1
    assert clean.summary["virtual"] is True
    for phone in clean.summary["phones"]:
        assert list(phone) == [
            "udid", "alias", "model", "product_type", "os", "outcome", "cause", "checks",
        ]  # fmt: skip
        for check in phone["checks"]:
            assert list(check) == [
                "id", "result", "value", "unit", "limit", "reason", "launch", "seq",
            ]  # fmt: skip


def test_the_run_directory_has_the_fixed_layout(clean: FinishedRun) -> None:
    present = {path.relative_to(clean.path).as_posix() for path in clean.path.rglob("*")}
    expected = {
        "run.json", "plan.json", "config.resolved.yaml", "events.ndjson", "MANIFEST.sha256",
        "junit.xml", "summary.json", "summary.md", "report/index.html",
    }  # fmt: skip
    for phone in read_json(clean.path / "plan.json")["phones"]:
        device = f"devices/{phone['alias']}-{phone['udid'][-8:]}"
        attempt = f"{device}/attempts/1"
        expected |= {
            f"{device}/device.json", f"{device}/verdict.json", f"{device}/telemetry.ndjson",
            f"{attempt}/console.log", f"{attempt}/evidence.json", f"{attempt}/health.json",
            f"{attempt}/launches/1/stream.ndjson", f"{attempt}/launches/1/journal.ndjson",
        }  # fmt: skip
    assert expected <= present


def test_the_manifest_is_what_sha256sum_would_write(clean: FinishedRun) -> None:
    for line in (clean.path / "MANIFEST.sha256").read_text().splitlines():
        digest, name = line.split("  ", 1)
        assert hashlib.sha256((clean.path / name).read_bytes()).hexdigest() == digest


def test_stream_and_journal_are_the_telemetry(clean: FinishedRun) -> None:
    for device in clean.devices():
        launch = device / "attempts" / "1" / "launches" / "1"
        telemetry = (device / "telemetry.ndjson").read_bytes()
        assert (launch / "journal.ndjson").read_bytes() == telemetry
        assert (launch / "stream.ndjson").read_bytes() == telemetry


def test_virtual_phones_are_marked_in_every_report(clean: FinishedRun) -> None:
    assert "virtual" in clean.stdout.lower()
    assert "virtual" in (clean.path / "summary.md").read_text().lower()
    assert "VIRTUAL" in (clean.path / "report" / "index.html").read_text()
    suites = ET.parse(clean.path / "junit.xml").iter("testsuite")  # noqa: S314 - our own file
    assert all(
        suite.find("properties/property[@name='virtual'][@value='true']") is not None
        for suite in suites
    )


def test_a_report_is_remade_from_the_directory_alone(clean: FinishedRun, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(clean.path, copy)
    for name in ("junit.xml", "summary.json", "summary.md", "report/index.html"):
        (copy / name).unlink()
    remade = run_fleet(tmp_path, "report", str(copy))
    assert remade.exit_code == 0
    assert read_json(copy / "summary.json") == clean.summary
    assert (copy / "MANIFEST.sha256").read_bytes() == (clean.path / "MANIFEST.sha256").read_bytes()
