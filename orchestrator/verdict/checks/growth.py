"""Checks that memory does not grow: over the soak, and with the rows of a state."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Final

from orchestrator.runlog.telemetry import AnyRecord, Evict, Hello, Sample, State, Tokens, Trim
from orchestrator.verdict.check import Check, CheckInfo, Limit, Setting
from orchestrator.verdict.tally import NS_PER_S
from orchestrator.verdict.trend import MIN_POINTS, Trace, trend_of

if TYPE_CHECKING:
    from orchestrator.runlog.documents import CheckDocument
    from orchestrator.runlog.telemetry import Record
    from orchestrator.verdict.check import Closing

_MIB: Final = 1024**2
_S_PER_HOUR: Final = 3600.0


class MemoryDrift(Check):
    """The footprint with a live state and no ballast stays where it is."""

    info = CheckInfo(
        id="memory.drift",
        title="Memory does not creep up over the soak",
        meaning=(
            "The footprint of samples with a live state and without ballast has no upward trend:"
            " it fails only where the robust slope and the last quarter against the first agree."
        ),
        causes=(
            "something is kept per token or per turn",
            "released states stay in a cache of the allocator",
            "autoreleased buffers pile up in a loop without a pool",
        ),
        what_to_do=(
            "run `--duration 30m` with another seed: a leak shows the same slope",
            "record with Instruments (Leaks, Allocations, generations per turn)",
        ),
        limits=(
            Limit("max_mib_per_hour", 8.0, "MiB/h", "the growth that passes in a long soak"),
            Limit("min_growth_mib", 24.0, "MiB", "growth below it is noise, however short the run"),
            Limit("warm_up_tokens", 128.0, "tokens", "of each launch, left out"),
        ),
    )

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._warm_up = self.limit("warm_up_tokens")
        self._trace = Trace()
        self._last: Sample | None = None  # of the points

    def observe(self, record: AnyRecord) -> None:
        """Take the next record."""
        match record:
            case Hello():
                # Launches are not compared: what a process leaks it gives back when it ends.
                self._trace = Trace()
            case Sample() if record.ballast == 0 and record.kv > 0:
                if record.tokens_total > self._warm_up:
                    self._trace.add(record.t_ns / NS_PER_S, record.footprint / _MIB)
                    self._last = record
            case _:
                pass

    def finish(self, closing: Closing) -> CheckDocument:
        """Return the result; the value is the growth that slope and windows agree on."""
        trend = trend_of(self._trace.points)
        if trend is None:
            have = len(self._trace.points)
            return self.unmeasured(
                f"{have} samples with a live state and no ballast; {MIN_POINTS} are needed"
            )
        hours = trend.span / _S_PER_HOUR
        allowed = max(self.limit("min_growth_mib"), self.limit("max_mib_per_hour") * hours)
        growth, limit = round(min(trend.change, trend.change_by_slope), 2), round(allowed, 2)
        remark = f"{trend.slope * _S_PER_HOUR:+.1f} MiB/h over {trend.span:.0f} s"
        if trend.grows_by(allowed):
            self._blame(f"the footprint grew, {remark}")
            return self.failed(growth, "MiB", limit)
        return self.passed(growth, "MiB", limit, remark)

    def _blame(self, text: str) -> None:
        if self._last is not None:
            self.faults.add(self._last, text)


class MemoryStaticKV(Check):
    """The footprint does not depend on how many rows a state holds."""

    info = CheckInfo(
        id="memory.static-kv",
        title="The KV cache is allocated once",
        meaning=(
            "From the making of a state to its last reading the footprint, ballast aside, grows by"
            " less than a part of what the rows would take: a state has its full size when made."
        ),
        causes=(
            "the cache is concatenated at each step instead of written in place",
            "the state's pages are touched only when a row is written",
            "logits or hidden states of every step are kept for the length of the turn",
        ),
        what_to_do=(
            "make the state with its full length and write rows in place",
            "`fleet model lint` tells packages that grow",
        ),
        limits=(
            Limit("max_growth_ratio", 0.25, "of a row's bytes", "growth per row that passes"),
            Limit("min_growth_mib", 3.0, "MiB", "growth of one state that is not noise"),
            Limit("min_rows", 128.0, "rows", "a state with fewer tells nothing"),
        ),
    )
    _MOST_STATES: Final = 100

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._min_rows = self.limit("min_rows")
        self._made: State | None = None
        self._tokens = self._made_tokens = 0
        self._ballast = 0  # bytes, of the latest sample
        self._reading: tuple[Record, int, int] | None = None  # latest: record, footprint, rows
        self._ratios = Trace(self._MOST_STATES)  # of states and growth per row
        self._states = 0

    def observe(self, record: AnyRecord) -> None:
        """Take the next record."""
        match record:
            case Tokens():
                self._tokens += len(record.ids)
            case State(action="made") if record.purpose != "audit":
                self._close()
                self._made, self._made_tokens = record, self._tokens
            case State() if record.purpose == "audit":
                self._reading = None  # two states at once: nothing can be said of either
            case Trim() | Evict():
                if not self._ballast:  # these records do not say how much of it there is
                    self._read(record, record.footprint, record.before)
                self._close()
            case Sample():
                self._ballast = record.ballast
                if not self._ballast:
                    self._read(record, record.footprint, record.n)
            case Hello():
                self._made = self._reading = None
                self._ballast = 0
                self._tokens = 0
            case _:
                pass

    def _read(self, record: Record, footprint: int, rows: int) -> None:
        ballast_moved = any(
            ramp.may_change_between(self._made_tokens, self._tokens)
            for ramp in self.setting.scenario.ballast
        )
        if self._made is not None and rows >= self._min_rows and not ballast_moved:
            self._reading = (record, footprint, rows)

    def _close(self) -> None:
        """Take the last reading of a state as what its rows cost."""
        made, reading = self._made, self._reading
        self._made = self._reading = None
        if made is None or reading is None or made.bytes <= 0:
            return
        record, footprint, rows = reading
        row_bytes = made.bytes / self.setting.phone.expected.capacity_tokens
        growth = footprint - made.footprint
        noise = abs(growth) < self.limit("min_growth_mib") * _MIB
        ratio = 0.0 if noise else growth / rows / row_bytes
        self._states += 1
        self._ratios.add(self._states, ratio)
        if ratio > self.limit("max_growth_ratio"):
            self.faults.add(record, f"the footprint grew with {rows} rows of state {made.id}")

    def finish(self, closing: Closing) -> CheckDocument:
        """Return the result; the value is the growth per row of the median state."""
        self._close()
        if not self._ratios.points:
            return self.unmeasured("no state was read at enough rows and without ballast")
        typical = round(median(ratio for _, ratio in self._ratios.points), 4)
        limit, unit = self.limit("max_growth_ratio"), "of a row's bytes per row"
        # One state may meet a neighbour's allocation; what grows with the rows grows in each.
        if typical > limit:
            return self.failed(typical, unit, limit)
        return self.passed(typical, unit, limit)
