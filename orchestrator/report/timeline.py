"""The timeline of a phone as values: what is drawn, thinned to a width, and told in words. Pure.

A chart has fewer columns than a soak has readings. Columns keep the least and the greatest value
of their span, so that a spike of one reading is drawn however long the run was.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from orchestrator.domain.counting import counted
from orchestrator.report.wording import MIB, duration, mebibytes
from orchestrator.verdict.series import Bucket

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from orchestrator.verdict.series import Series

THERMAL_STATES: Final = ("nominal", "fair", "serious", "critical")


@dataclass(frozen=True, slots=True)
class Timeline:
    """One phone's series with the bounds it is held against."""

    series: Series
    limit_bytes: int | None  # of the process, by the phone
    allowed_bytes: int | None  # the limit less the policy's headroom
    budget_tokens: int  # the host's, not the app's own
    died: bool  # the app's end is marked

    @property
    def span_s(self) -> float:
        """From the first record to the last, launches joined."""
        return max(self.series.end_s, 1e-3)


def timeline_of(
    series: Series,
    *,
    limit_bytes: int | None,
    headroom_percent: float,
    budget_tokens: int,
    died: bool,
) -> Timeline | None:
    """Return the timeline of a phone, None where nothing was measured."""
    if not (series.footprint_bytes or series.rows or series.tokens_per_s):
        return None
    allowed = None if limit_bytes is None else int(limit_bytes * (1 - headroom_percent / 100))
    return Timeline(series, limit_bytes, allowed, budget_tokens, died)


def thinned(buckets: Sequence[Bucket], span_s: float, columns: int) -> list[Bucket]:
    """Return at most so many buckets over a span, each with the extremes of those it joins."""
    width_s = span_s / columns
    joined: dict[int, Bucket] = {}
    for bucket in buckets:
        column = min(int(bucket.start_s / width_s), columns - 1)
        known = joined.get(column)
        if known is None:
            joined[column] = bucket
        else:
            low, high = min(known.low, bucket.low), max(known.high, bucket.high)
            joined[column] = Bucket(known.start_s, low, high)
    return list(joined.values())


def mark_times(timeline: Timeline, kind: str, columns: int) -> list[float]:
    """Return when events of a kind came, at most one time per column."""
    width_s = timeline.span_s / columns
    times = [mark.start_s for mark in timeline.series.marks if mark.kind == kind]
    return list({int(at_s / width_s): at_s for at_s in reversed(times)}.values())[::-1]


def described(timeline: Timeline) -> list[tuple[str, str]]:
    """Return the text alternative: what each panel shows, as label and sentence."""
    series = timeline.series
    told = [
        ("Memory", _memory(timeline)),
        ("Context", _context(timeline)),
        ("Trims", _trims(series)),
        ("Speed", _speed(series)),
        ("Thermal state", _thermal(series)),
        ("Battery", _battery(series)),
        ("End", f"the app ended here, after {duration(timeline.span_s)}" if timeline.died else ""),
    ]
    return [(label, sentence) for label, sentence in told if sentence]


def _memory(timeline: Timeline) -> str:
    series = timeline.series
    if not series.footprint_bytes:
        return ""
    highest = max(bucket.high for bucket in series.footprint_bytes)
    parts = [f"footprint at most {mebibytes(highest)}"]
    if timeline.limit_bytes:
        ratio = highest / timeline.limit_bytes
        parts.append(f"{ratio:.0%} of the limit of {mebibytes(timeline.limit_bytes)}")
    if series.own_bytes:
        own = max(bucket.high for bucket in series.own_bytes)
        allowed = timeline.allowed_bytes
        bound = "" if allowed is None else f", {mebibytes(allowed)} are allowed"
        parts.append(f"without ballast at most {mebibytes(own)}{bound}")
    return "; ".join(parts)


def _context(timeline: Timeline) -> str:
    rows = timeline.series.rows
    if not rows:
        return ""
    highest = max(bucket.high for bucket in rows)
    return f"at most {highest:,.0f} tokens of a budget of {timeline.budget_tokens:,}"


def _trims(series: Series) -> str:
    missing, undue = series.count("trim_missing"), series.count("trim_unexpected")
    told = [
        f"{series.predicted_trims:,} predicted, {series.count('trim'):,} observed",
        f"{missing:,} missing" if missing else "",
        f"{undue:,} not predicted" if undue else "",
        counted(series.count("evict"), "eviction"),
        counted(series.count("memory_warning"), "memory warning"),
    ]
    return "; ".join(filter(None, told))


def _speed(series: Series) -> str:
    buckets = series.tokens_per_s
    if not buckets:
        return ""
    middle = sorted(bucket.high for bucket in buckets)[len(buckets) // 2]
    highest = max(bucket.high for bucket in buckets)
    return f"median {middle:,.1f} tokens/s, at most {highest:,.1f}"


def _thermal(series: Series) -> str:
    states = {span.state for span in series.thermal}
    known: list[str] = [state for state in THERMAL_STATES if state in states]
    if states - set(THERMAL_STATES):
        known.append("unknown")
    left_out = f"; {series.thermal_left_out} changes left out" if series.thermal_left_out else ""
    return (", ".join(known) + left_out) if known else ""


def _battery(series: Series) -> str:
    buckets = series.battery_percent
    if not buckets:
        return ""
    return f"{buckets[0].high:.0f} % at first, {buckets[-1].low:.0f} % at last"


def in_mebibytes(buckets: Sequence[Bucket]) -> list[Bucket]:
    """Return buckets of bytes in MiB."""
    return [Bucket(b.start_s, b.low / MIB, b.high / MIB) for b in buckets]


def thermal_spans(timeline: Timeline) -> Iterator[tuple[float, float, str]]:
    """Yield begin, end and state of the spans that were warmer than nominal."""
    spans = timeline.series.thermal
    ends = [span.start_s for span in spans[1:]] + [timeline.span_s]
    for span, end_s in zip(spans, ends, strict=True):
        if span.state in THERMAL_STATES[1:]:
            yield span.start_s, end_s, span.state
