"""An honest app passes, whatever its scenario exercises."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from orchestrator.domain.checks import CHECK_IDS
from orchestrator.verdict.catalog import CATALOG
from orchestrator.verdict.judge import judge
from tests.verdict.host_side import (
    case_of,
    check_of,
    encode,
    evidence_of,
    failures,
    judged,
    plan_of,
    wire_scenario,
)
from tests.verdict.telemetry_factory import App
from tests.verdict.telemetry_spec import FULL, Row, Spec

if TYPE_CHECKING:
    from orchestrator.runlog.documents import CheckDocument

NO_WARNINGS = Spec(warn_in_predictions=frozenset(), warn_after_turns=frozenset())


def test_every_check_passes_and_the_phone_with_them() -> None:
    app = App(FULL)
    verdict = judged(app).verdict
    assert {check.id: check for check in verdict.checks if check.result != "pass"} == {}
    assert (verdict.outcome, verdict.cause) == ("PASS", "completed")
    assert verdict.tokens_total == 600
    assert verdict.last_token_index == 599
    assert (verdict.trims, verdict.evictions) == (app.counts["trim"], app.counts["evict"])
    assert verdict.stand_in


def test_every_check_has_a_fixed_id_and_says_what_it_means() -> None:
    assert tuple(CATALOG) == CHECK_IDS
    assert all(info.title and info.meaning and info.causes for info in CATALOG.values())


@pytest.mark.parametrize("seed", range(12))
def test_warnings_at_any_step_leave_an_honest_app_without_a_failure(seed: int) -> None:
    spec = Spec(
        seed=seed,
        pin=seed % 2,
        max_ids=20 if seed % 3 else 70,
        turn_limit=60,
        chunk=5 + seed,
        warn_in_predictions=frozenset((seed * step * 7) % 977 for step in range(40)),
        warn_after_turns=frozenset(range(1, 40, 3)),
        stop_after=600,
    )
    assert not failures(judged(App(spec)))


@pytest.mark.parametrize(
    ("check_id", "reason"),
    [
        ("evict.on-warning", "no memory warning found a live, non-empty state"),
        ("evict.frees-memory", "no eviction released a state"),
        ("evict.notice", "no eviction happened that could be shown"),
    ],
)
def test_without_a_warning_evictions_are_unmeasured(check_id: str, reason: str) -> None:
    judgement = judged(App(NO_WARNINGS))
    check = check_of(judgement, check_id)
    assert (check.result, check.reason) == ("unmeasured", reason)
    assert judgement.verdict.outcome == "ERROR"
    assert judgement.verdict.explanation == (
        "evict.on-warning is required and was not measured:"
        " no memory warning found a live, non-empty state."
    )


@pytest.mark.parametrize("check_id", ["trim.on-schedule", "trim.keeps-tail", "trim.notice"])
def test_without_a_trim_the_schedule_is_unmeasured(check_id: str) -> None:
    roomy = Spec(budget=2048, stop_after=100)
    assert check_of(judged(App(roomy)), check_id).result == "unmeasured"


def test_a_phone_without_telemetry_measures_nothing() -> None:
    verdict = judge(case_of(evidence=evidence_of(exits=[])), []).verdict
    assert {check.result for check in verdict.checks} == {"unmeasured"}
    assert all(check.reason for check in verdict.checks)
    assert (verdict.outcome, verdict.cause) == ("ERROR", "telemetry_lost")


class TruncatingApp(App):
    def too_long(self, wanted: list[int], room: int) -> tuple[list[int], int]:
        front = [] if self.accepted else wanted[: self.spec.pin]
        return front + wanted[len(wanted) - (room - len(front)) :], 0


def test_truncation_that_the_policy_allows_passes() -> None:
    spec = Spec(min_ids=60, max_ids=90, turn_limit=12, long_prompt="truncate")
    assert not failures(judged(TruncatingApp(spec)))


class ReloadingApp(App):
    """Loads the model again before every fifth turn (R9)."""

    def play_turn(self) -> None:
        if self.context and self.counts["turns"] % 5 == 4:
            held = self.context
            self.drop("reload")
            self.context = []
            self.feed(held, "reload")
        super().play_turn()


def test_a_reload_feeds_the_whole_context_again() -> None:
    assert not failures(judged(ReloadingApp(NO_WARNINGS)))


class LowMemoryApp(App):
    """Trims for low memory before decode steps of its own choice (R13)."""

    def must_trim(self, k: int) -> bool:
        self.low = k == 1 and self.tokens_total % 90 == 50 and not super().must_trim(k)
        return self.low or super().must_trim(k)

    def write_trim(self, kept: list[int], k: int) -> Row:
        cut = super().write_trim(kept, k)
        cut["reason"] = "low_memory" if self.low else "budget"
        return cut


def low_memory_check(*, allowed: bool) -> CheckDocument:
    app = LowMemoryApp(NO_WARNINGS)
    scenario = wire_scenario(app.spec)
    policy = scenario["policy"]
    assert isinstance(policy, dict)
    policy["low_memory_trim"] = allowed
    plan = plan_of(app.spec, scenario=scenario)
    judgement = judge(case_of(app.spec, plan=plan), encode(app.run()))
    return check_of(judgement, "trim.on-schedule")


def test_a_low_memory_trim_is_an_input_where_the_scenario_has_it_on() -> None:
    assert low_memory_check(allowed=True).result == "pass"


def test_a_low_memory_trim_is_no_excuse_where_it_is_off() -> None:
    assert low_memory_check(allowed=False).result == "fail"
