from __future__ import annotations

import pytest

from orchestrator.history.comparison import Finding, compare
from orchestrator.history.entry import LABELS, STAMP_NAMES
from orchestrator.history.wording import comparison_lines, verdict_line
from tests.history.entries import phone, run, runs_of

STEADY = [200.0, 201.0, 199.0, 200.5, 199.5, 200.2]
SLOWER = [180.0, 181.0, 179.0]


def test_a_slower_app_is_worse_and_a_faster_one_better() -> None:
    old, new = runs_of(STEADY), runs_of(SLOWER, 50)
    worse = compare(new, old)
    assert [line.finding for line in worse.lines] == [Finding.WORSE]
    assert worse.conclusive
    assert [line.finding for line in compare(old, new).lines] == [Finding.BETTER]


def test_a_proven_loss_below_the_limit_is_no_regression() -> None:
    slightly = runs_of([value * 0.97 for value in STEADY], 50)
    assert not compare(slightly, runs_of(STEADY)).worse
    strict = compare(slightly, runs_of(STEADY), max_loss_percent={"tokens_per_s": 1.0})
    assert strict.worse


def test_more_memory_is_worse() -> None:
    old = runs_of(STEADY, measures={"footprint_peak_bytes": 1e9})
    new = runs_of(STEADY, 50, measures={"footprint_peak_bytes": 1.2e9})
    assert [line.measure.name for line in compare(new, old).worse] == ["footprint_peak_bytes"]


@pytest.mark.parametrize("stamp", STAMP_NAMES)
def test_every_differing_stamp_refuses_and_is_named(stamp: str) -> None:
    comparison = compare(runs_of(SLOWER, 50, **{stamp: "other"}), runs_of(STEADY))
    assert comparison.lines == ()
    assert not comparison.conclusive
    (refusal,) = comparison.refusals
    assert len(refusal.reasons) == 1
    assert refusal.reasons[0].startswith(f"{LABELS[stamp]} other against ")
    assert "refused" in comparison_lines(comparison)[0]


def test_the_nearest_phone_of_the_same_model_gives_the_reasons() -> None:
    far = phone(model="iPhone 16")
    near = phone(os_build="22H1", thermal_start="fair")
    comparison = compare([run(9)], [run(1, far, near)])
    assert comparison.refusals[0].reasons == (
        "OS build 22G86 against 22H1",
        "thermal state at the start nominal against fair",
    )


def test_phones_that_lab_errors_ended_are_not_measured() -> None:
    broken = runs_of(STEADY, outcome="ERROR")
    comparison = compare(runs_of(SLOWER, 50), broken)
    assert comparison.refusals[0].reasons == ("the base has no phone that passed or failed",)


def test_one_run_against_one_is_inconclusive_and_says_so() -> None:
    comparison = compare([run(9, phone(100.0))], [run(1)])
    assert [line.finding for line in comparison.lines] == [Finding.TOO_FEW_RUNS]
    assert verdict_line(comparison) == (
        "inconclusive: 0 phones refused, 1 of 1 measure with too few runs"
    )
    assert comparison_lines(comparison)[1].startswith("    1 run against 1: the noise is not known")


def test_recorded_runs_of_another_build_tell_the_noise() -> None:
    history = runs_of([150.0, 151.0, 149.0, 150.5], 20, app_build="a0")
    comparison = compare([run(9, phone(180.0))], [run(1, phone(200.0))], history)
    assert [line.finding for line in comparison.lines] == [Finding.WORSE]


def test_two_phones_of_a_cell_are_one_number_per_run() -> None:
    twice = [run(n, phone(v), phone(v, udid="other-phone-udid")) for n, v in enumerate(STEADY)]
    (line,) = compare(runs_of(SLOWER, 50), twice).lines
    assert line.base.runs == len(STEADY)


def test_nothing_to_compare_is_not_a_pass() -> None:
    comparison = compare([run(1, phone(outcome="ABORTED"))], runs_of(STEADY))
    assert not comparison.conclusive
    assert comparison_lines(comparison)[0].startswith("nothing to compare")


def test_hostile_names_do_not_reach_the_terminal() -> None:
    comparison = compare([run(9, phone(alias="a\x1b[31m", engine="x\ny"))], [run(1)])
    assert all(line.isprintable() for line in comparison_lines(comparison))
