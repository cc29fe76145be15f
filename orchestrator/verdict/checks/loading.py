"""Checks of the model's load: where its operations run, and how long it takes."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from orchestrator.runlog.telemetry import AnyRecord, Load
from orchestrator.verdict.check import Check, CheckInfo, Limit, Setting

if TYPE_CHECKING:
    from orchestrator.runlog.documents import CheckDocument
    from orchestrator.verdict.check import Closing

_NEURAL_ENGINE: Final = "neural_engine"
_GROUPS: Final = ("feed_forward", "attention", "embedding", "norm", "head")
_MOST_SHOWN: Final = 400


class PlanPlacement(Check):
    """The compute plan puts the operations where they are fast and cost no memory."""

    info = CheckInfo(
        id="plan.placement",
        title="The model runs on the Neural Engine",
        meaning=(
            "Of each group of operations at least the limit is planned for the Neural Engine, in"
            " every load: what falls back runs slower and its weights count as the app's own."
        ),
        causes=(
            "an operation or a shape that the Neural Engine does not take",
            "the package is over the size that it compiles",
            "compute units were restricted and the restriction was forgotten",
        ),
        what_to_do=(
            "see the groups in the `load` record",
            "`fleet model lint` names operations and shapes that fall back",
        ),
        limits=(
            Limit("feed_forward_min_percent", 90.0, "% of its operations", "of the feed-forward"),
            Limit("attention_min_percent", 0.0, "% of its operations", "of the attention"),
            Limit("embedding_min_percent", 0.0, "% of its operations", "of the embedding"),
            Limit("norm_min_percent", 0.0, "% of its operations", "of the normalisations"),
            Limit("head_min_percent", 0.0, "% of its operations", "of the output head"),
        ),
    )

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._share: float | None = None  # least of the feed-forward
        self._table = ""
        self._loads = 0

    def observe(self, record: AnyRecord) -> None:
        """Take the next record."""
        if not isinstance(record, Load):
            return
        self._loads += 1
        counts = _operations(record.plan)
        for group in _GROUPS:
            total = sum(count for (named, _), count in counts.items() if named == group)
            if total:
                self._judge(record, group, 100.0 * counts[group, _NEURAL_ENGINE] / total)
        self._table = self._table or _table(counts)

    def _judge(self, record: Load, group: str, percent: float) -> None:
        if group == _GROUPS[0]:
            self._share = min(percent, 100.0 if self._share is None else self._share)
        if percent < self.limit(f"{group}_min_percent"):
            text = f"{percent:.0f} % of {group} is planned for the Neural Engine"
            self.faults.add(record, text, round(percent, 2))

    def finish(self, closing: Closing) -> CheckDocument:
        """Return the result; the value is the feed-forward's share on the Neural Engine."""
        limit, unit = self.limit("feed_forward_min_percent"), "% on the Neural Engine"
        if self.faults.count:
            return self.failed(self.faults.value, unit, limit)
        if self._share is not None:
            return self.passed(round(self._share, 2), unit, limit, self._table)
        if not self._loads:
            return self.unmeasured("no model was loaded")
        if self.setting.phone.virtual:
            return self.skipped("virtual: the package states no compute plan")
        return self.unmeasured("the load states no compute plan")


def _operations(plan: list[dict[str, object]]) -> Counter[tuple[str, str]]:
    """Return operations by group and device; entries that are no such thing count for nothing."""
    counts: Counter[tuple[str, str]] = Counter()
    for entry in plan:
        match entry:
            case {"group": str(group), "device": str(device), "ops": int(count)} if count > 0:
                counts[group, device] += count
            case _:
                pass
    return counts


def _table(counts: Counter[tuple[str, str]]) -> str:
    rows = [f"{group} {device} {count}" for (group, device), count in sorted(counts.items())]
    return ", ".join(rows)[:_MOST_SHOWN]


class LoadTime(Check):
    """The model is loaded in time, cold and warm apart."""

    info = CheckInfo(
        id="load.time",
        title="The model loads in time",
        meaning=(
            "No load takes longer than its limit: a cold one, which the Neural Engine compiles"
            " for, a warm one, which finds its cache; of an engine with a set load time it is a"
            " multiple of that. A virtual phone's load without a set time is its host's."
        ),
        causes=(
            "the compiler's cache was lost, or is keyed by a path that changes",
            "the model is loaded on the main thread behind other work",
            "the package is loaded once to inspect it and once to run it",
        ),
        what_to_do=(
            "compare the first load with the second: only a cold one compiles",
            "keep the compiled model at a path that does not change",
        ),
        limits=(
            Limit("cold_limit_s", 180.0, "s", "of a load that compiles"),
            Limit("warm_limit_s", 10.0, "s", "of a load that finds its cache"),
            Limit("max_set_ratio", 2.0, "times", "the load time that an engine was set to"),
        ),
    )

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._set_s = (setting.phone.expected.load_ms or 0.0) / 1000.0
        self._longest: tuple[float, float] | None = None  # seconds and their limit

    def observe(self, record: AnyRecord) -> None:
        """Take the next record."""
        if not isinstance(record, Load):
            return
        took_s, limit_s = record.ms / 1000.0, self._limit_s(record)
        if self._longest is None or took_s / limit_s > self._longest[0] / self._longest[1]:
            self._longest = (took_s, limit_s)
        if not took_s <= limit_s:
            kind = "cold" if record.cold else "warm"
            self.faults.add(record, f"a {kind} load took {took_s:.2f} s", round(took_s, 3))

    def _limit_s(self, record: Load) -> float:
        if self._set_s > 0:
            return self._set_s * self.limit("max_set_ratio")
        return self.limit("cold_limit_s" if record.cold else "warm_limit_s")

    def finish(self, closing: Closing) -> CheckDocument:
        """Return the result; the value is the load nearest to its limit."""
        if self._longest is None:
            return self.unmeasured("no model was loaded")
        if self.setting.phone.virtual and not self._set_s:
            return self.skipped("virtual: the load time of a virtual phone is its host's")
        took_s, limit_s = self._longest
        if self.faults.count:
            return self.failed(round(took_s, 3), "s", round(limit_s, 3))
        return self.passed(round(took_s, 3), "s", round(limit_s, 3))
