"""Checks of decode speed: fast enough, and as fast at the end as at the beginning."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.verdict.check import CheckInfo, Limit, Setting
from orchestrator.verdict.checks.speed_check import WARM_UP, SpeedCheck
from orchestrator.verdict.heat import COOL, SpeedByHeat
from orchestrator.verdict.trend import MIN_POINTS

if TYPE_CHECKING:
    from orchestrator.runlog.documents import CheckDocument
    from orchestrator.runlog.telemetry import AnyRecord
    from orchestrator.verdict.pace import Step
    from orchestrator.verdict.trend import Trend


class PerfThroughput(SpeedCheck):
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
        what_to_do=(
            "check `plan.placement` first, then the build configuration",
            "soak one phone alone, cool and charged, before judging it",
        ),
        limits=(
            Limit("min_tokens_per_s", 5.0, "tokens/s", "of a model of unknown speed"),
            Limit("min_set_speed_ratio", 0.9, "of the set speed", "of an engine of set speed"),
            WARM_UP,
        ),
    )

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._heat = SpeedByHeat()
        self._set_speed = setting.scenario.speed.decode_tokens_per_s
        self._witnessed = False

    def observe(self, record: AnyRecord) -> None:
        """Take the next record."""
        super().observe(record)
        self._witnessed = self._witnessed or self.setting.expectation.proves_context

    def _take(self, step: Step, thermal: str) -> None:
        paced = self.setting.expectation.proves_context
        self._heat.take(step, thermal, paced=paced)

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


class PerfDecay(SpeedCheck):
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
        what_to_do=(
            "look whether the loss comes with heat in the report's series",
            "profile the last minute against the first",
        ),
        limits=(
            Limit("max_loss_percent", 10.0, "%", "of the first quarter's speed"),
            WARM_UP,
        ),
    )

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._heat = SpeedByHeat()

    def _take(self, step: Step, thermal: str) -> None:
        paced = self.setting.expectation.proves_context
        self._heat.take(step, thermal, paced=paced)

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


def _loss_percent(trend: Trend) -> float:
    return -100.0 * max(trend.change, trend.change_by_slope) / trend.first


def _listed(speeds: dict[str, float]) -> str:
    return ", ".join(f"{state} {speed:.1f} tokens/s" for state, speed in speeds.items())
