from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from orchestrator.domain.errors import RunDirectoryError
from orchestrator.domain.measures import MEASURE_NAMES
from orchestrator.history.measuring import measure
from orchestrator.history.reading import read_entry, scenario_stamp
from orchestrator.report.remake import remake
from orchestrator.runlog.manifest import write_manifest
from tests.report.runs import LINES, write_run
from tests.verdict.telemetry_spec import DIGEST

if TYPE_CHECKING:
    from pathlib import Path


def sample(t_s: float, tokens: int, footprint: int = 900, **facts: object) -> bytes:
    import json

    fields = {
        "launch": "a",
        "seq": 1,
        "t_ns": int(t_s * 1e9),
        "kind": "sample",
        "footprint": footprint,
        "peak": footprint,
        "available": 1,
        "compressed": 0,
        "kv": 0,
        "ballast": 0,
        "weights": 0,
        "host_bytes": 0,
        "n": 1,
        "surfaces": 0,
        "thermal": "fair",
        "low_power": False,
        "foreground": True,
        "tokens_total": tokens,
    }
    return json.dumps({**fields, **facts}).encode()


def test_a_run_directory_gives_stamps_measures_and_checks(tmp_path: Path) -> None:
    written = write_run(tmp_path / "run")
    write_manifest(written.root)
    remake(written.root)
    entry = read_entry(written.root)
    (phone,) = entry.phones
    assert entry.outcome == "PASS"
    assert phone.stamps.model_digest == DIGEST[:12]
    assert phone.stamps.engine == "witness"
    assert phone.stamps.virtual == "yes"
    assert phone.stamps.thermal_start == "nominal"
    assert set(phone.measures) <= set(MEASURE_NAMES)
    assert phone.measures["footprint_peak_bytes"] > 0
    assert phone.check("budget.never-exceeded") is not None


def test_a_run_that_was_never_judged_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunDirectoryError, match=r"summary\.json"):
        read_entry(write_run(tmp_path / "run").root)


def test_speed_is_the_median_of_the_spans_between_samples_that_made_tokens() -> None:
    lines = [sample(0, 0), sample(1, 100), sample(2, 300), sample(3, 300), sample(4, 600)]
    assert measure(lines).numbers()["tokens_per_s"] == 200.0


def test_a_new_launch_starts_its_own_spans() -> None:
    lines = [sample(0, 0), sample(1, 100), sample(50, 90_000, launch="b")]
    assert measure(lines).numbers()["tokens_per_s"] == 100.0


def test_ballast_is_not_the_apps_own_footprint() -> None:
    lines = [sample(0, 0, 900), sample(1, 10, 5000, ballast=4200)]
    assert measure(lines).numbers()["footprint_peak_bytes"] == 900.0


def test_hostile_lines_are_left_out() -> None:
    lines = [b'{"kind":"sample"', b'"sample"\xff', b'{"kind":"sample","t_ns":"x"}', *LINES]
    assert measure(lines).numbers() == measure(LINES).numbers()


def test_the_seed_is_no_part_of_the_scenario_but_its_length_is() -> None:
    scenario: dict[str, object] = {"name": "smoke", "seed": 1, "duration_s": 60.0}
    assert scenario_stamp(scenario) == scenario_stamp({**scenario, "seed": 2})
    assert scenario_stamp(scenario) != scenario_stamp({**scenario, "duration_s": 61.0})
