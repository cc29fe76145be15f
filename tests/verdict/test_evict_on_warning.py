"""Which warnings bind, when they are answered, and what may stand between."""

from __future__ import annotations

from typing import cast

import pytest

from orchestrator.verdict.judge import judge
from tests.verdict.host_side import case_of, check_of, encode, failures, judged
from tests.verdict.telemetry_factory import App
from tests.verdict.telemetry_spec import Row, Spec

QUIET = Spec(warn_in_predictions=frozenset(), warn_after_turns=frozenset())


def result_of(app: App) -> str:
    return check_of(judged(app), "evict.on-warning").result


def test_warnings_that_come_together_share_one_eviction() -> None:
    class DoubleWarned(App):
        def warn(self) -> None:
            super().warn()
            super().warn()

    app = DoubleWarned()
    judgement = judged(app)
    assert check_of(judgement, "evict.on-warning").value == app.warnings
    assert app.warnings == 2 * app.counts["evict"]
    assert not failures(judgement)


def test_a_warning_that_finds_no_state_needs_no_answer() -> None:
    class WarnedBeforeAnything(App):
        def begin(self) -> None:
            super().begin()
            self.warn()
            self.waiting = []

    assert result_of(WarnedBeforeAnything(QUIET)) == "unmeasured"
    assert result_of(WarnedBeforeAnything()) == "pass"


def test_a_warning_in_the_very_first_chunk_binds() -> None:
    class Deaf(App):
        def warn(self) -> None:
            super().warn()
            self.waiting = []

    app = Deaf(Spec(warn_in_predictions=frozenset({1}), warn_after_turns=frozenset()))
    assert result_of(app) == "fail"


class LateAnswer(App):
    """Answers a number of predictions late."""

    late = 0

    def answer(self) -> bool:
        if self.waiting and self.predictions < self.due:
            held, self.waiting = self.waiting, []
            self.held = held
            return True
        if getattr(self, "held", None):
            if self.predictions < self.due:
                return True
            self.waiting, self.held = self.held, []
        return super().answer()

    def warn(self) -> None:
        super().warn()
        self.due = self.predictions + self.late

    due = 0
    held: list[int]


@pytest.mark.parametrize(("late", "result"), [(0, "pass"), (1, "pass"), (2, "fail"), (5, "fail")])
def test_one_further_prediction_may_start_and_no_more(late: int, result: str) -> None:
    app = LateAnswer(Spec(warn_in_predictions=frozenset({70}), warn_after_turns=frozenset()))
    app.late = late
    assert result_of(app) == result


def test_a_warning_during_the_release_belongs_to_the_eviction_under_way() -> None:
    class WarnedDuringRelease(App):
        def drop(self, purpose: str) -> None:
            if purpose == "evict":
                waiting = self.waiting
                self.warn()
                self.waiting = waiting
            super().drop(purpose)

    judgement = judged(WarnedDuringRelease())
    assert not failures(judgement)


def test_a_warning_that_the_end_of_the_conversation_overtakes_is_excused() -> None:
    class WarnedAtTheEnd(App):
        def drop(self, purpose: str) -> None:
            if purpose == "end":
                self.warn()
                self.waiting = []
            super().drop(purpose)

    assert not failures(judged(WarnedAtTheEnd()))


@pytest.mark.parametrize(("reason", "kind"), [("background", "lifecycle"), ("fault", "fault")])
def test_an_eviction_for_another_reason_needs_its_record(reason: str, kind: str) -> None:
    fields: dict[str, Row] = {
        "lifecycle": {"event": "background", "phase": "decode"},
        "fault": {"code": "logits", "message": "not finite", "phase": "decode"},
    }

    class Interrupted(App):
        def answer(self) -> bool:
            if self.tokens_total == 100 and not self.waiting and self.generated:
                if self.announces:
                    self.write(kind, **fields[kind])
                self.evict(reason)
                if self.announces and reason == "background":
                    self.write("lifecycle", event="foreground", phase="decode")
            return super().answer()

        def ends(self, token: int) -> str | None:
            evicted = self.tokens_total == 100 and reason == "fault"
            return "fault" if evicted else super().ends(token)

        def finish_turn(self, reason: str) -> None:
            super().finish_turn(reason)
            if reason == "fault":
                self.pending = []

        announces = True

    assert not failures(judged(Interrupted()))
    silent = Interrupted()
    silent.announces = False
    assert failures(judged(silent)) == {"evict.on-warning"}


def test_an_eviction_of_an_empty_state_fails() -> None:
    records = App().run()
    evict = next(row for row in records if row["kind"] == "evict")
    evict["before"] = 0
    assert "evict.on-warning" in failures(judge(case_of(), encode(records)))


def test_an_eviction_that_names_a_warning_that_never_came_fails() -> None:
    records = App().run()
    evicts = [row for row in records if row["kind"] == "evict"]
    cast("list[int]", evicts[-1]["warnings"]).append(99)
    assert "evict.on-warning" in failures(judge(case_of(), encode(records)))
