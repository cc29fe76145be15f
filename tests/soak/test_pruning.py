from __future__ import annotations

from pathlib import Path

from orchestrator.soak.pruning import SECONDS_PER_DAY, KeepRule, OldRun, prunable

NOW_S = 100 * SECONDS_PER_DAY


def run(run_id: str, age_days: float, *, ended: bool = True) -> OldRun:
    return OldRun(Path(run_id), run_id, NOW_S - age_days * SECONDS_PER_DAY, ended, 1)


RUNS = [run("new", 1), run("old", 40), run("older", 50), run("oldest", 60)]


def going(runs: list[OldRun], **rule: object) -> list[str]:
    given: dict[str, object] = {
        "older_than_s": 30 * SECONDS_PER_DAY, "newest": 0, "signed": (), "baselines": (), **rule
    }  # fmt: skip
    return [entry.run_id for entry in prunable(runs, KeepRule(**given), NOW_S)]  # type: ignore[arg-type]


def test_runs_over_the_age_may_go_oldest_first() -> None:
    assert going(RUNS) == ["oldest", "older", "old"]


def test_the_newest_stay_whatever_their_age() -> None:
    assert going(RUNS, newest=2) == ["oldest", "older"]
    assert going(RUNS, newest=9) == []


def test_signed_runs_and_baselines_stay() -> None:
    assert going(RUNS, signed={"oldest"}, baselines={"old"}) == ["older"]


def test_a_run_that_has_not_ended_stays() -> None:
    assert going([run("left", 90, ended=False)]) == []
