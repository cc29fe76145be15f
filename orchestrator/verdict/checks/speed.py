"""Checks of decode speed: fast enough, as fast at the end, as fast with a long context.

Speed is judged apart for each thermal state of the phone: what heat takes is no defect of the app,
and what is lost without heat is one. On a virtual phone the speed is its host's, so the checks are
skipped unless the scenario asks for them.
"""

from __future__ import annotations

from abc import abstractmethod
from statistics import median
from typing import TYPE_CHECKING, Final

from orchestrator.verdict.check import Check, CheckInfo, Limit, Setting
from orchestrator.verdict.pace import NOMINAL
from orchestrator.verdict.tally import NS_PER_S
from orchestrator.verdict.trend import MIN_POINTS, Trace, trend_of

if TYPE_CHECKING:
    from orchestrator.runlog.documents import CheckDocument
    from orchestrator.runlog.telemetry import AnyRecord
    from orchestrator.verdict.check import Closing
    from orchestrator.verdict.pace import Step
    from orchestrator.verdict.trend import Trend

COOL: Final = (NOMINAL, "fair")  # iOS does not throttle much below `serious`
_STATES: Final = (*COOL, "serious", "critical")
_NOT_ON_VIRTUAL: Final = "virtual: the speed of a virtual phone is its host's"
_WARM_UP: Final = Limit("warm_up_tokens", 128.0, "tokens", "of each launch, left out")


class _SpeedCheck(Check):
    """Takes the decode steps after the warm-up."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._warm_up = self.limit(_WARM_UP.name)
        self._last_place: tuple[str, int] | None = None

    def observe(self, record: AnyRecord) -> None:
        """Take the next record."""
        for step in self.setting.pace.steps:
            if step.ordinal > self._warm_up:
                self._last_place = (record.launch, record.seq)
                self._take(step, self.setting.pace.thermal)

    @abstractmethod
    def _take(self, step: Step, thermal: str) -> None:
        """Take a decode step after the warm-up."""

    @abstractmethod
    def _judge(self) -> CheckDocument:
        """Return the result where speed is to be judged."""

    def finish(self, closing: Closing) -> CheckDocument:
        """Return the result."""
        if self.setting.phone.virtual and not self.setting.plan.requires.virtual_speed:
            return self.skipped(_NOT_ON_VIRTUAL)
        return self._judge()

    def _blame(self, text: str) -> None:
        self.faults.note(text, *(self._last_place or (None, None)))


class _Windows:
    """Decode speed in windows of equal numbers of steps, for one thermal state."""

    def __init__(self, steps_each: int) -> None:
        self._steps_each = steps_each
        self._count = 0
        self._span_ns = 0
        self.trace = Trace()  # of seconds of decoding in this state, and tokens per second

    def take(self, step: Step, at_s: float) -> None:
        self._count += 1
        self._span_ns += step.latency_ns
        if self._count == self._steps_each:
            self.trace.add(at_s, self._count * NS_PER_S / self._span_ns)
            self._count = self._span_ns = 0


class _ByHeat:
    """Speed windows for each thermal state; time is the time spent decoding."""

    _STEPS_EACH: Final = 32
    _LEAST_WINDOWS: Final = 3  # that a median is taken of

    def __init__(self) -> None:
        self._windows: dict[str, _Windows] = {}
        self._decoding_ns = 0

    def take(self, step: Step, thermal: str) -> None:
        self._decoding_ns += step.latency_ns
        if thermal in _STATES:
            windows = self._windows.setdefault(thermal, _Windows(self._STEPS_EACH))
            windows.take(step, self._decoding_ns / NS_PER_S)

    def speeds(self) -> dict[str, float]:
        """Return the median speed of each state with enough windows, coolest first."""
        return {
            state: median(speed for _, speed in self._windows[state].trace.points)
            for state in _STATES
            if state in self._windows
            and len(self._windows[state].trace.points) >= self._LEAST_WINDOWS
        }

    def trends(self) -> dict[str, Trend]:
        """Return the trend of speed in each state with enough windows, coolest first."""
        found = {
            state: trend_of(self._windows[state].trace.points)
            for state in _STATES
            if state in self._windows
        }
        return {state: trend for state, trend in found.items() if trend is not None}


class PerfThroughput(_SpeedCheck):
    """Decoding is fast enough while the phone is cool."""

    info = CheckInfo(
        id="perf.throughput",
        title="Decoding is fast enough",
        meaning=(
            "In the nominal and the fair thermal state the median decode speed is at least the"
            " limit; of an engine of set speed it is a part of that speed. What is measured in"
            " hotter states is stated and not judged."
        ),
        causes=(
            "the model runs on the CPU or the GPU instead of the Neural Engine",
            "work of the view is done on the decode loop",
            "a debug build",
        ),
        limits=(
            Limit("min_tokens_per_s", 5.0, "tokens/s", "of a model of unknown speed"),
            Limit("min_set_speed_ratio", 0.9, "of the set speed", "of an engine of set speed"),
            _WARM_UP,
        ),
    )

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._heat = _ByHeat()
        self._set_speed = setting.scenario.speed.decode_tokens_per_s
        self._witnessed = False

    def observe(self, record: AnyRecord) -> None:
        """Take the next record."""
        super().observe(record)
        self._witnessed = self._witnessed or self.setting.expectation.proves_context

    def _take(self, step: Step, thermal: str) -> None:
        self._heat.take(step, thermal)

    def _least(self) -> float:
        if self._witnessed and self._set_speed is not None:
            return self._set_speed * self.limit("min_set_speed_ratio")
        return self.limit("min_tokens_per_s")

    def _judge(self) -> CheckDocument:
        speeds, least = self._heat.speeds(), round(self._least(), 3)
        cool = {state: speed for state, speed in speeds.items() if state in COOL}
        remark = _listed(speeds)
        if not cool:
            reason = f"the phone was hot: {remark}" if speeds else "too few decode steps"
            return self.unmeasured(reason)
        slowest = min(cool.values())
        if slowest < least:
            self._blame(f"slow_without_heat: {remark}")
            return self.failed(round(slowest, 3), "tokens/s", least)
        return self.passed(round(slowest, 3), "tokens/s", least, remark)


class PerfDecay(_SpeedCheck):
    """Decoding does not slow down while the phone stays cool."""

    info = CheckInfo(
        id="perf.decay",
        title="Decoding does not slow down over the soak",
        meaning=(
            "Within the nominal and within the fair thermal state the last quarter of the decode"
            " steps is about as fast as the first, and the robust slope agrees; a loss that comes"
            " with a hotter state is the phone's."
        ),
        causes=(
            "something grows with the number of tokens and is walked at each step",
            "memory pressure: pages are compressed and read back",
            "observers pile up and each is told of every token",
        ),
        limits=(
            Limit("max_loss_percent", 10.0, "%", "of the first quarter's speed"),
            _WARM_UP,
        ),
    )

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._heat = _ByHeat()

    def _take(self, step: Step, thermal: str) -> None:
        self._heat.take(step, thermal)

    def _judge(self) -> CheckDocument:
        limit = self.limit("max_loss_percent")
        cool = {state: t for state, t in self._heat.trends().items() if state in COOL}
        if not cool:
            return self.unmeasured(f"fewer than {MIN_POINTS} windows of steps in a cool state")
        state, trend = max(cool.items(), key=lambda item: _loss_percent(item[1]))
        loss = _loss_percent(trend)
        remark = f"{state}: {trend.first:.1f} to {trend.last:.1f} tokens/s"
        if trend.falls_by(trend.first * limit / 100.0):
            self._blame(f"slow_without_heat: {remark}")
            return self.failed(round(loss, 2), "%", limit)
        return self.passed(round(loss, 2), "%", limit, remark)


class PerfFlatDecode(_SpeedCheck):
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
        limits=(
            Limit("max_ratio", 1.5, "times", "the time of a step with few rows"),
            Limit("min_row_span_ratio", 0.25, "of the budget", "that the rows must span"),
            _WARM_UP,
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


def _loss_percent(trend: Trend) -> float:
    return -100.0 * max(trend.change, trend.change_by_slope) / trend.first


def _listed(speeds: dict[str, float]) -> str:
    return ", ".join(f"{state} {speed:.1f} tokens/s" for state, speed in speeds.items())
