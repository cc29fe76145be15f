"""A bounded min/max series of a run, for drawing: any length fits, no peak is lost.

Buckets are of equal span. When there would be too many, neighbours are joined and the span
doubles, so memory never depends on how long the run was.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from orchestrator.runlog.telemetry import (
    AnyRecord,
    Evict,
    Hello,
    MemoryWarning,
    Sample,
    Tokens,
    Trim,
)
from orchestrator.verdict.deviation import DeviationKind
from orchestrator.verdict.tally import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.verdict.deviation import Deviation

MAX_BUCKETS: Final = 2000
MAX_THERMAL_SPANS: Final = 500
_FIRST_SPAN_NS: Final = NS_PER_S // 4
_LEAST_SPEED_SPAN_NS: Final = NS_PER_S // 10
# What a deviation says of the schedule beside the trims that came.
_SCHEDULE: Final = {
    DeviationKind.TRIM_MISSING: "trim_missing",
    DeviationKind.TRIM_UNEXPECTED: "trim_unexpected",
}


@dataclass(frozen=True, slots=True)
class Bucket:
    """Least and greatest value of one span of time."""

    start_s: float  # since the first record, launches joined end to end
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Mark:
    """Events of one kind in one span of time."""

    start_s: float
    kind: str  # "trim", "trim_missing", "trim_unexpected", "evict", "memory_warning", "launch"
    count: int


@dataclass(frozen=True, slots=True)
class ThermalSpan:
    """The phone's thermal state from a moment on, until the next span."""

    start_s: float
    state: str  # raw text of the phone


@dataclass(frozen=True, slots=True)
class Series:
    """What the report draws.

    Thermal changes beyond the first `MAX_THERMAL_SPANS` are counted in `thermal_left_out`.
    """

    span_s: float  # of a bucket
    end_s: float  # of the last record
    footprint_bytes: Sequence[Bucket]
    own_bytes: Sequence[Bucket]  # footprint without the scenario's ballast
    peak_bytes: Sequence[Bucket]  # the highest footprint since the launch, as the app says it
    rows: Sequence[Bucket]
    tokens_per_s: Sequence[Bucket]
    battery_percent: Sequence[Bucket]
    marks: Sequence[Mark]
    thermal: Sequence[ThermalSpan]
    thermal_left_out: int

    def count(self, kind: str) -> int:
        """Return how many events of a kind the run had."""
        return sum(mark.count for mark in self.marks if mark.kind == kind)

    @property
    def predicted_trims(self) -> int:
        """Trims that the contract called for: those that came less the undue, and the missing."""
        return self.count("trim") - self.count("trim_unexpected") + self.count("trim_missing")


class _Channel:
    """Buckets of one value, by index."""

    def __init__(self) -> None:
        self.buckets: dict[int, tuple[float, float]] = {}

    def add(self, index: int, low: float, high: float) -> None:
        known = self.buckets.get(index)
        if known is not None:
            low, high = min(low, known[0]), max(high, known[1])
        self.buckets[index] = (low, high)

    def halve(self) -> None:
        old, self.buckets = self.buckets, {}
        for index, (low, high) in old.items():
            self.add(index // 2, low, high)


@dataclass(slots=True)
class SeriesBuilder:
    """Takes records in order and keeps at most `MAX_BUCKETS` buckets a channel."""

    _span_ns: int = _FIRST_SPAN_NS
    _footprint: _Channel = field(default_factory=_Channel)
    _own: _Channel = field(default_factory=_Channel)
    _peak: _Channel = field(default_factory=_Channel)
    _rows: _Channel = field(default_factory=_Channel)
    _speed: _Channel = field(default_factory=_Channel)
    _battery: _Channel = field(default_factory=_Channel)
    _marks: dict[tuple[int, str], int] = field(default_factory=dict)
    _thermal: list[ThermalSpan] = field(default_factory=list)
    _thermal_left_out: int = 0
    _launch: str | None = None
    _base_ns: int = 0  # where the launch begins
    _now_ns: int = 0
    _last_sample: tuple[int, int] | None = None  # time, tokens

    def observe(self, record: AnyRecord, deviations: Sequence[Deviation] = ()) -> None:
        """Take the next record, and where it leaves the contract."""
        if record.launch != self._launch:
            self._launch, self._base_ns, self._last_sample = record.launch, self._now_ns, None
        # A time that goes back is drawn where the run stands.
        self._now_ns = max(self._now_ns, self._base_ns + record.t_ns)
        while self._now_ns // self._span_ns >= MAX_BUCKETS:
            self._halve()
        for deviation in deviations:
            if deviation.kind in _SCHEDULE:
                self._mark(_SCHEDULE[deviation.kind])
        match record:
            case Tokens() if record.n:
                self._add(self._rows, min(record.n), max(record.n))
            case Sample():
                self._sample(record)
            case Trim() | Evict():
                self._add(self._footprint, record.footprint)
                self._add(self._rows, record.before)
                self._mark("trim" if isinstance(record, Trim) else "evict")
            case MemoryWarning():
                self._add(self._footprint, record.footprint)
                self._mark("memory_warning")
            case Hello():
                self._add(self._footprint, record.footprint)
                self._mark("launch")
            case _:
                pass

    def _sample(self, record: Sample) -> None:
        self._add(self._footprint, record.footprint)
        self._add(self._own, record.footprint - record.ballast)
        self._add(self._peak, record.peak)
        self._add(self._rows, record.n)
        if record.battery_percent is not None:
            self._add(self._battery, record.battery_percent)
        self._add_speed(record)
        self._feel(record.thermal)

    def _add_speed(self, record: Sample) -> None:
        if self._last_sample is not None:
            span_ns = self._now_ns - self._last_sample[0]
            if span_ns < _LEAST_SPEED_SPAN_NS:
                return  # some samples stand beside an event: too close for a speed
            tokens = record.tokens_total - self._last_sample[1]
            if tokens >= 0:
                self._add(self._speed, tokens * NS_PER_S / span_ns)
        self._last_sample = (self._now_ns, record.tokens_total)

    def _feel(self, state: str) -> None:
        if self._thermal and self._thermal[-1].state == state:
            return
        if len(self._thermal) >= MAX_THERMAL_SPANS:
            self._thermal_left_out += 1
            return
        self._thermal.append(ThermalSpan(self._now_ns / NS_PER_S, state))

    def _mark(self, kind: str) -> None:
        place = (self._now_ns // self._span_ns, kind)
        self._marks[place] = self._marks.get(place, 0) + 1

    def _add(self, channel: _Channel, low: float, high: float | None = None) -> None:
        channel.add(self._now_ns // self._span_ns, low, low if high is None else high)

    def _halve(self) -> None:
        self._span_ns *= 2
        for each in self._channels():
            each.halve()
        old, self._marks = self._marks, {}
        for (index, kind), count in old.items():
            place = (index // 2, kind)
            self._marks[place] = self._marks.get(place, 0) + count

    def _channels(self) -> tuple[_Channel, ...]:
        return (
            self._footprint,
            self._own,
            self._peak,
            self._rows,
            self._speed,
            self._battery,
        )

    def finish(self) -> Series:
        """Return the series."""
        footprint, own, peak, rows, speed, battery = map(self._buckets, self._channels())
        span_s = self._span_ns / NS_PER_S
        return Series(
            span_s=span_s,
            end_s=self._now_ns / NS_PER_S,
            footprint_bytes=footprint,
            own_bytes=own,
            peak_bytes=peak,
            rows=rows,
            tokens_per_s=speed,
            battery_percent=battery,
            marks=tuple(
                Mark(index * span_s, kind, count)
                for (index, kind), count in sorted(self._marks.items())
            ),
            thermal=tuple(self._thermal),
            thermal_left_out=self._thermal_left_out,
        )

    def _buckets(self, channel: _Channel) -> tuple[Bucket, ...]:
        span_s = self._span_ns / NS_PER_S
        return tuple(
            Bucket(index * span_s, float(low), float(high))
            for index, (low, high) in sorted(channel.buckets.items())
        )
