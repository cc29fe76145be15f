"""Checks of how the soak ended: no kill, no crash, and not before its time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orchestrator.domain.outcome import Cause, Outcome
from orchestrator.verdict.check import Check, CheckInfo, Limit
from orchestrator.verdict.tally import LaunchTotals

if TYPE_CHECKING:
    from orchestrator.evidence.classified import ClassifiedReport
    from orchestrator.runlog.documents import CheckDocument
    from orchestrator.verdict.check import Closing
    from orchestrator.verdict.ending import Ending
    from orchestrator.verdict.tally import Tally

_JETSAM: Final = frozenset(
    {Cause.JETSAM_PER_PROCESS_LIMIT, Cause.JETSAM_SYSTEM_PRESSURE, Cause.KILLED_UNCONFIRMED}
)
_KILLED: Final = _JETSAM | {Cause.THERMAL_KILL}
_CRASHES: Final = frozenset({Cause.CRASH, Cause.WATCHDOG})
_CLEAN_EXIT: Final = 0


def _is_crash(report: ClassifiedReport) -> bool:
    """Return whether a report is of a crash; heat ends an app by a crash report too."""
    return report.kind == "crash" and not report.thermal_kill


def _left_in_peace(ending: Ending) -> str | None:
    """Return how the app is known to have survived the soak, None where it is not."""
    if ending.alive_at_end:
        return "seen alive at the end"
    if ending.exit is not None and ending.exit.signal and not ending.ended_by_us:
        return None
    if ending.bye_reason is not None:
        return f"ended by its own farewell ({ending.bye_reason})"
    if ending.exit is not None and ending.exit.exit_code == _CLEAN_EXIT:
        return "exited by itself"
    if ending.ended_by_us:
        return "stopped by the host"
    return None


class JetsamNone(Check):
    """iOS did not kill the app for memory."""

    info = CheckInfo(
        id="jetsam.none",
        title="The app was not killed for memory",
        meaning=(
            "No jetsam report names the app within the soak, and the process is known to have lived"
            " to its end: a missing report alone proves nothing, because iOS rate-limits them."
        ),
        causes=(
            "the KV cache grows past the budget",
            "a memory warning is not answered",
            "the weights of a larger class's package",
        ),
        what_to_do=(
            "read the cause of death: `fleet explain jetsam_per_process_limit`",
            "look at the last samples before the kill in the report",
        ),
    )

    def finish(self, closing: Closing) -> CheckDocument:
        """Return the result; the value is how the app ended."""
        cause = closing.diagnosis.cause
        if cause in _JETSAM:
            self.faults.note(closing.diagnosis.sentence, *_last_place(closing))
            return self.failed(cause.value, None)
        survived = _left_in_peace(closing.ending)
        if survived is None:
            return self.unmeasured("nobody saw the process alive at the end")
        return self.passed(survived, None)


class CrashNone(Check):
    """The app did not crash."""

    info = CheckInfo(
        id="crash.none",
        title="The app did not crash",
        meaning="No crash report names the app within the soak and no crash signal ended it.",
        causes=("an uncaught error", "a trap in Swift code", "a buffer of the wrong shape"),
        what_to_do=(
            "read the crash report under `attempts/<n>/reports/`: `fleet crashlog parse PATH`",
            "symbolicate it with the build's dSYM",
        ),
    )

    def finish(self, closing: Closing) -> CheckDocument:
        """Return the result; the value is how the app ended."""
        ending = closing.ending
        cause = closing.diagnosis.cause
        report = next((report for report in ending.reports if _is_crash(report)), None)
        if cause in _CRASHES or report is not None:
            reason = report.summary if report else closing.diagnosis.sentence
            self.faults.note(reason, *_last_place(closing))
            return self.failed((cause if cause in _CRASHES else Cause.CRASH).value, None)
        if cause in _KILLED:
            return self.passed("killed, not crashed", None)
        survived = _left_in_peace(ending)
        if survived is None:
            return self.unmeasured("nobody saw how the process ended")
        return self.passed(survived, None)


class SoakCompleted(Check):
    """The soak ran for as long as was planned, in as many launches as were planned."""

    info = CheckInfo(
        id="soak.completed",
        title="The soak ran to its end",
        meaning=(
            "The app said `completed` after the planned time of inference, by its predictions, or"
            " after exactly the planned number of tokens, and no launch before it ended early."
            " Where the scenario launches the app again, each launch did its part."
        ),
        causes=("the app was killed or exited", "it stops before its time", "the phone was lost"),
        what_to_do=(
            "read the cause of death of the phone in summary.json or the report",
            "`fleet explain CAUSE` says what each means",
        ),
        limits=(
            Limit("tolerance_s", 0.5, "s", "that may be missing, or 2 % of the duration"),
            Limit("idle_end_limit_s", 5.0, "s", "of a pause, a reload or a visit at the end"),
        ),
    )
    _TOLERANCE_RATIO: Final = 0.02

    def finish(self, closing: Closing) -> CheckDocument:
        """Return the result; the value is inference time in seconds, or tokens."""
        diagnosis, tally = closing.diagnosis, closing.tally
        completed = tally.bye is not None and tally.bye.reason == "completed"
        if not completed and diagnosis.outcome(closing.ending) in (Outcome.ERROR, Outcome.ABORTED):
            return self.unmeasured(diagnosis.sentence)
        place = _last_place(closing)
        if not completed:
            self.faults.note(diagnosis.sentence, *place)
        if tally.launches_without_bye:
            self.faults.note("an earlier launch ended without a farewell", *place)
        if self.setting.scenario.relaunches.count:
            return self._by_launch(tally, completed=completed)
        stop_after = self.setting.scenario.stop_after_tokens
        if stop_after is not None and tally.tokens_total == stop_after:
            return self._result(tally.tokens_total, "tokens", stop_after)
        duration_s = self.setting.scenario.duration_s
        whole = LaunchTotals(None, tally.inference_s, tally.idle_end_s, tally.tokens_total)
        if completed and not self._is_long_enough(whole, duration_s):
            text = f"only {tally.inference_s:.1f} of {duration_s:g} s of inference were done"
            self.faults.note(text, *place)
        return self._result(round(tally.inference_s, 3), "s", duration_s)

    def _is_long_enough(self, done: LaunchTotals, duration_s: float) -> bool:
        slack_s = self.limit("tolerance_s", at_least=self._TOLERANCE_RATIO * duration_s)
        # The time may pass while nothing is predicted; an app that stops early says so at once.
        idle_s = min(done.idle_end_s, self.limit("idle_end_limit_s"))
        return done.inference_s + idle_s >= duration_s - slack_s

    def _by_launch(self, tally: Tally, *, completed: bool) -> CheckDocument:
        """Judge each launch by its part; the value is the number of launches."""
        due = self.setting.scenario.relaunches.count + 1
        launches = [*tally.earlier, tally.latest]
        if completed and not self.faults.count and len(launches) < due:
            return self.unmeasured(f"only {len(launches)} of {due} launches were made")
        for number, done in enumerate(launches, start=1):
            self._judge_part(number, done, tally)
        return self._result(len(launches), "launches", due)

    def _judge_part(self, number: int, done: LaunchTotals, tally: Tally) -> None:
        part, place = self.setting.scenario.part(number), (tally.launch, tally.last_seq)
        if done.bye_reason not in (None, "completed"):
            self.faults.note(f"launch {number} said {done.bye_reason!r}", *place)
        elif done.bye_reason is None or done.tokens == part.stop_after_tokens:
            return
        elif not self._is_long_enough(done, part.duration_s):
            text = f"launch {number} did only {done.inference_s:.1f} of {part.duration_s:g} s"
            self.faults.note(text, *place)

    def _result(self, value: float, unit: str, limit: float) -> CheckDocument:
        if self.faults.count:
            return self.failed(value, unit, limit)
        return self.passed(value, unit, limit)


def _last_place(closing: Closing) -> tuple[str | None, int | None]:
    return closing.tally.launch, closing.tally.last_seq
