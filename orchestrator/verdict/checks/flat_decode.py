"""Check that a step costs the same however long the context is."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Final

from orchestrator.verdict.check import CheckInfo, Limit, Setting
from orchestrator.verdict.checks.speed_check import WARM_UP, SpeedCheck
from orchestrator.verdict.heat import COOL
from orchestrator.verdict.tally import NS_PER_S
from orchestrator.verdict.trend import Trace, trend_of

if TYPE_CHECKING:
    from orchestrator.runlog.documents import CheckDocument
    from orchestrator.verdict.pace import Step


class PerfFlatDecode(SpeedCheck):
    """A decode step takes as long with a full context as with a short one."""

    info = CheckInfo(
        id="perf.flat-decode",
        title="A step costs the same with a long context",
        meaning=(
            "The median time of a step with many rows is at most the limit times that with few: a"
            " step that reads the cache is nearly flat, one that feeds the context again is not."
        ),
        causes=(
            "the cache is not used and the whole context is predicted at each step",
            "the cache is copied at each step",
            "the prompt is tokenised again for every token",
        ),
        what_to_do=(
            "check that one row is fed per step",
            "look for a copy of the cache in the step",
        ),
        limits=(
            Limit("max_ratio", 1.5, "times", "the time of a step with few rows"),
            Limit("min_row_span_ratio", 0.25, "of the budget", "that the rows must span"),
            WARM_UP,
        ),
    )
    _BINS: Final = 24
    _MOST_STEPS: Final = 48  # of a bin
    _LEAST_STEPS: Final = 8  # of a bin
    _MAKES_UP_RATIO: Final = 0.8  # of the set time of a step

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._width = max(1, setting.phone.expected.budget_tokens // self._BINS)
        self._bins: dict[int, Trace] = {}
        self._steps = 0
        set_speed = setting.scenario.speed.decode_tokens_per_s
        self._set_step_ns = NS_PER_S / set_speed if set_speed else 0.0

    def _take(self, step: Step, thermal: str) -> None:
        if thermal not in COOL or self._makes_up_time(step):
            return
        self._steps += 1
        bin_number = min(max(0, step.rows // self._width), self._BINS * 2)
        trace = self._bins.setdefault(bin_number, Trace(self._MOST_STEPS))
        trace.add(self._steps, step.latency_ns / NS_PER_S)

    def _makes_up_time(self, step: Step) -> bool:
        """Return whether an engine of set speed ran faster than that, after a late step.

        Such steps follow trims on a busy host, all with the same few rows.
        """
        paced = self.setting.expectation.proves_context
        return paced and step.latency_ns < self._MAKES_UP_RATIO * self._set_step_ns

    def _judge(self) -> CheckDocument:
        points = [
            (float(number * self._width), median(latency for _, latency in trace.points))
            for number, trace in sorted(self._bins.items())
            if len(trace.points) >= self._LEAST_STEPS
        ]
        least = self.limit("min_row_span_ratio") * self.setting.phone.expected.budget_tokens
        trend = trend_of(points)
        if trend is None or trend.span < least:
            return self.unmeasured("the context's length did not vary enough")
        # Slope and windows must agree: a busy moment of the phone falls into a few bins.
        growth = min(trend.change, trend.change_by_slope)
        ratio, limit = round(1.0 + growth / trend.first, 3), self.limit("max_ratio")
        remark = (
            f"{trend.first * 1e3:.2f} ms at {points[0][0]:.0f} rows,"
            f" {trend.last * 1e3:.2f} ms at {points[-1][0]:.0f}"
        )
        if ratio > limit:
            self._blame(remark)
            return self.failed(ratio, "times", limit)
        return self.passed(ratio, "times", limit, remark)
