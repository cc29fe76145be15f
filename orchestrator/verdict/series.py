"""A bounded min/max series of a run, for drawing: any length fits, no peak is lost.

Buckets are of equal span. When there would be too many, neighbours are joined and the span
doubles, so memory never depends on how long the run was.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from orchestrator.runlog.telemetry import AnyRecord, Evict, MemoryWarning, Sample, Tokens, Trim
from orchestrator.verdict.tally import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_BUCKETS: Final = 2000
MAX_MARKS: Final = 2000
_FIRST_SPAN_NS: Final = NS_PER_S // 4


@dataclass(frozen=True, slots=True)
class Bucket:
    """Least and greatest value of one span of time."""

    start_s: float  # since the first record, launches joined end to end
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Mark:
    """An event worth a line in a drawing."""

    at_s: float
    kind: str  # "trim", "evict", "memory_warning"
    launch: str
    seq: int


@dataclass(frozen=True, slots=True)
class Series:
    """What the report draws.

    Marks beyond the first `MAX_MARKS` are counted in `marks_left_out` and not kept.
    """

    span_s: float  # of a bucket
    footprint_bytes: Sequence[Bucket]
    rows: Sequence[Bucket]
    tokens_per_s: Sequence[Bucket]
    marks: Sequence[Mark]
    marks_left_out: int


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
    _rows: _Channel = field(default_factory=_Channel)
    _speed: _Channel = field(default_factory=_Channel)
    _marks: list[Mark] = field(default_factory=list)
    _marks_left_out: int = 0
    _launch: str | None = None
    _base_ns: int = 0  # where the launch begins
    _now_ns: int = 0
    _last_sample: tuple[int, int] | None = None  # time, tokens

    def observe(self, record: AnyRecord) -> None:
        """Take the next record."""
        if record.launch != self._launch:
            self._launch, self._base_ns, self._last_sample = record.launch, self._now_ns, None
        # A time that goes back is drawn where the run stands.
        self._now_ns = max(self._now_ns, self._base_ns + record.t_ns)
        match record:
            case Sample():
                self._add(self._footprint, record.footprint, record.footprint)
                self._add(self._rows, record.n, record.n)
                self._add_speed(record)
            case Tokens() if record.n:
                self._add(self._rows, min(record.n), max(record.n))
            case Trim() | Evict():
                self._add(self._footprint, record.footprint, record.footprint)
                self._add(self._rows, record.before, record.before)
                self._mark(record, "trim" if isinstance(record, Trim) else "evict")
            case MemoryWarning():
                self._add(self._footprint, record.footprint, record.footprint)
                self._mark(record, "memory_warning")
            case _:
                pass

    def _add_speed(self, record: Sample) -> None:
        if self._last_sample is not None:
            span_ns = self._now_ns - self._last_sample[0]
            tokens = record.tokens_total - self._last_sample[1]
            if span_ns > 0 and tokens >= 0:
                speed = tokens * NS_PER_S / span_ns
                self._add(self._speed, speed, speed)
        self._last_sample = (self._now_ns, record.tokens_total)

    def _mark(self, record: AnyRecord, kind: str) -> None:
        if len(self._marks) >= MAX_MARKS:
            self._marks_left_out += 1
            return
        self._marks.append(Mark(self._now_ns / NS_PER_S, kind, record.launch, record.seq))

    def _add(self, channel: _Channel, low: float, high: float) -> None:
        while self._now_ns // self._span_ns >= MAX_BUCKETS:
            self._span_ns *= 2
            for each in (self._footprint, self._rows, self._speed):
                each.halve()
        channel.add(self._now_ns // self._span_ns, low, high)

    def finish(self) -> Series:
        """Return the series."""
        return Series(
            span_s=self._span_ns / NS_PER_S,
            footprint_bytes=self._buckets(self._footprint),
            rows=self._buckets(self._rows),
            tokens_per_s=self._buckets(self._speed),
            marks=tuple(self._marks),
            marks_left_out=self._marks_left_out,
        )

    def _buckets(self, channel: _Channel) -> tuple[Bucket, ...]:
        span_s = self._span_ns / NS_PER_S
        return tuple(
            Bucket(index * span_s, float(low), float(high))
            for index, (low, high) in sorted(channel.buckets.items())
        )
