"""The benchmarks run, keep what they measured, and write a page that says which goals are met."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.benchmarks import (
    page,
    part_discovery,
    part_evidence,
    part_long,
    part_push,
    part_soak,
    part_startup,
)
from tests.benchmarks.__main__ import PARTS, SPECIAL, main, part
from tests.benchmarks.samples import OURS, Row, Sample, exponent, growth, markdown
from tests.benchmarks.scale import Scale

ROOT = Path(__file__).parents[2]


def test_a_cost_that_grows_with_the_square_has_exponent_two() -> None:
    assert exponent([(1, 3), (2, 12), (10, 300)]) == pytest.approx(2)
    assert exponent([(5, 1), (5, 2)]) is None


def test_the_curve_takes_the_best_of_each_size() -> None:
    samples = [
        Sample("p", "m", OURS, size, {"s": cost}) for size, cost in [(1, 9), (1, 1), (10, 10)]
    ]
    assert growth(samples, "m", "s") == "1: 1, 10: 10; exponent 1.00"


def test_a_row_says_whether_its_goal_is_met() -> None:
    assert Row("m", "1", goal="< 2", met=True).cells[-1] == "yes"
    assert Row("m", "3", goal="< 2", met=False).cells[-1] == "**no**"
    assert Row("m", "?", goal="< 2").cells[-1] == "not measured"
    assert Row("m", "1").cells[-1] == ""
    assert markdown(("a", "b"), [("1", "2")]) == "| a | b |\n| --- | --- |\n| 1 | 2 |\n"


def test_a_peer_that_is_not_installed_is_named() -> None:
    taken = {"wall_s": 0.5, "cpu_s": 0.2}
    samples = [
        Sample("discovery", "list", OURS, 50, taken),
        Sample("discovery", "list", part_discovery.LIBRARY, 50, {"wall_s": 1.0, "cpu_s": 1.0}),
        Sample("discovery", "list", part_discovery.TOOLS, 50, note="not installed"),
    ]
    limit, library, tools = part_discovery.rows(samples)
    assert (limit.met, library.met, library.ratio) == (True, False, "2.0 x")
    assert "not installed" in tools.peer


def test_help_is_held_to_the_smaller_of_both_ratios() -> None:
    ours = {"wall_s": 0.1, "cpu_s": 0.1}
    there = {"wall_s": 1.0, "cpu_s": 0.4}
    samples = [
        Sample("startup", "help", OURS, 1, ours),
        Sample("startup", "help", part_startup.LIBRARY, 1, there),
    ]
    assert [row.met for row in part_startup.rows(samples)] == [True, False]


def test_long_runs_are_held_to_linear_time_and_flat_memory() -> None:
    samples = [
        Sample(
            "long", "report", OURS, h, {"cpu_s": h * h, "peak_mib": 100 + h, "bytes_per_phone": 1}
        )
        for h in (2.0, 12.0)
    ]
    assert [row.met for row in part_long.rows(samples)] == [False, True]


def test_soaks_of_two_sizes_say_what_a_phone_adds() -> None:
    figures = {"cpu_percent_per_phone": 0.5, "late_s": 9.0, "flash_kb_s": 6.0, "complete": 1.0}
    samples = [
        Sample(
            "soak", "soak", OURS, size, figures | {"private_mib": mib, "flash_samples_kb_s": 2.0}
        )
        for size, mib in [(1, 100.0), (11, 140.0)]
    ]
    rows = {row.measure: row for row in part_soak.rows(samples)}
    assert rows["11 phones: orchestrator, CPU per phone"].met is True
    assert rows["11 phones: oldest newest record"].met is False
    assert rows["11 phones: telemetry without a gap"].met is False
    assert rows["1 phones: journal, were it 1 sample/s"].ours == "4.40 kB/s"
    each = rows["orchestrator, private memory per phone from 1 to 11"]
    assert (each.ours, each.met) == ("4.00 MiB", False)


def test_a_push_is_held_to_raw_afc_and_to_silence_the_second_time() -> None:
    taken = {"wall_s": 2.0, "cpu_s": 1.0, "bytes": 8.0}
    samples = [
        Sample("push", "push", OURS, 8, taken),
        Sample("push", "push", part_push.FLOOR, 8, taken | {"wall_s": 1.0}),
        Sample("push", "again", OURS, 8, taken),
    ]
    assert [row.met for row in part_push.rows(samples)] == [False, False]


def test_only_one_part_of_the_page_is_replaced() -> None:
    text = page.PAGE.read_text()
    for name in (*PARTS, *SPECIAL):
        fresh = page.with_block(text, name, "NEW")
        assert fresh.count("NEW") == 1
        assert len([line for line in fresh.splitlines() if line.startswith("<!-- bench")]) == (
            2 * len((*PARTS, *SPECIAL))
        )


def test_every_part_has_its_interface() -> None:
    for name in (*PARTS, *SPECIAL):
        module = part(name)
        assert name == module.NAME
        assert module.rows([]) == []


def test_the_readers_are_compared_and_every_sample_is_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--quick", "--only", "evidence", "--output", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    (kept,) = tmp_path.glob("*.json")
    assert str(kept) in printed
    document = json.loads(kept.read_text())
    subjects = {sample["subject"] for sample in document["samples"]["evidence"]}
    assert subjects == {OURS, part_evidence.FLOOR, part_evidence.LIBRARY}
    assert "| jetsam report of" in printed


@pytest.mark.deep
@pytest.mark.timeout(1200)
@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_every_part_runs(tmp_path: Path) -> None:
    names = [word for name in (*PARTS, *SPECIAL) for word in ("--only", name)]
    command = [sys.executable, "-m", "tests.benchmarks", "--quick", *names]
    command += ["--output", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (kept,) = tmp_path.glob("*.json")
    assert set(json.loads(kept.read_text())["samples"]) == {*PARTS, *SPECIAL}


@pytest.mark.deep
@pytest.mark.timeout(1200)
def test_memory_does_not_follow_the_length_of_a_run() -> None:
    """A whole run in memory would show: two hours are 25 MB of records a phone."""
    samples = part_long.measure(Scale(hours=(0.2, 2.0)))
    short, long = (sample.values["peak_mib"] for sample in samples)
    assert long < short * part_long.FLAT
