"""Totals and last readings of one phone, taken in the same pass as the checks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from orchestrator.runlog.telemetry import (
    AnyRecord,
    Breadcrumb,
    Bye,
    Evict,
    Hello,
    Lifecycle,
    MemoryWarning,
    Prefill,
    Sample,
    Tokens,
    Trim,
)
from orchestrator.verdict.intake import plain

if TYPE_CHECKING:
    from collections.abc import Sequence

NS_PER_S: Final = 1_000_000_000
_REMEMBERED_WARNINGS: Final = 1024
_REMEMBERED_LAUNCHES: Final = 64


@dataclass(frozen=True, slots=True)
class LaunchTotals:
    """One launch's part of the soak."""

    bye_reason: str | None
    inference_s: float  # from the first prediction's start to the last one's end
    idle_end_s: float  # from the last prediction to the farewell; 0 without one
    tokens: int


@dataclass(slots=True)
class Tally:
    """What happened so far; the attributes without a span are of the latest launch."""

    records: int = 0
    launches: int = 0
    launches_without_bye: int = 0  # that a later launch followed
    hello: Hello | None = None
    bye: Bye | None = None
    launch: str | None = None
    last_seq: int | None = None
    last_t_ns: int = 0
    last_footprint_bytes: int | None = None
    last_breadcrumb: str | None = None
    foreground: bool | None = None  # by the phone's own moves; the scenario's visits do not count
    boot_times_s: tuple[float, float] | None = None  # first and last launch that said one
    first_warning_at_n: int | None = None  # rows of the state at the first warning that found some
    thermal: str | None = None
    tokens_total: int = 0  # samples, of all launches
    trims: int = 0  # of all launches
    evictions: int = 0  # of all launches
    kernel_evictions: int = 0  # that answered a warning of the kernel, of all launches
    stand_in: bool = False
    earlier: list[LaunchTotals] = field(default_factory=list)  # the first ones, at most 64
    _inference_ns: int = 0  # of launches before the latest
    _tokens_before: int = 0  # of launches before the latest
    _first_start_ns: int | None = None
    _last_end_ns: int = 0
    _kernel_warnings: dict[int, None] = field(default_factory=dict)
    _visiting: bool = False  # the scenario has sent the app to the background

    @property
    def inference_s(self) -> float:
        """From the first prediction's start to the last one's end, summed over launches."""
        return (self._inference_ns + self._span_ns()) / NS_PER_S

    @property
    def idle_end_s(self) -> float:
        """From the last prediction of the latest launch to its farewell; 0 without one."""
        if self.bye is None or self._first_start_ns is None:
            return 0.0
        return max(0, self.bye.t_ns - self._last_end_ns) / NS_PER_S

    @property
    def latest(self) -> LaunchTotals:
        """The totals of the latest launch alone."""
        reason = self.bye.reason if self.bye else None
        tokens = self.tokens_total - self._tokens_before
        return LaunchTotals(reason, self._span_ns() / NS_PER_S, self.idle_end_s, tokens)

    @property
    def limit_bytes(self) -> int | None:
        """The per-process limit, None where the phone did not say.

        Both readings are of one record, because the limit can change while an app runs.
        """
        if self.hello is None or self.hello.available <= 0:
            return None
        return self.hello.footprint + self.hello.available

    def last_record_at_s(self) -> float | None:
        """Return the phone's wall clock at the last record, None without a `hello`."""
        if self.hello is None:
            return None
        return self.hello.wall_time_s + (self.last_t_ns - self.hello.t_ns) / NS_PER_S

    def observe(self, record: AnyRecord) -> None:
        """Take the next record."""
        if record.launch != self.launch:
            self._begin_launch(record.launch)
        self.records += 1
        self.last_seq = record.seq
        self.last_t_ns = max(self.last_t_ns, record.t_ns)
        footprint = getattr(record, "footprint", None)
        if footprint is not None:
            self.last_footprint_bytes = footprint
        self._count(record)

    def warned_at(self, rows: int) -> None:
        """Note that a memory warning came at a predicted number of rows."""
        if self.first_warning_at_n is None and rows:
            self.first_warning_at_n = rows

    def _begin_launch(self, launch: str) -> None:
        if self.launch is not None:
            self.launches_without_bye += self.bye is None
            if len(self.earlier) < _REMEMBERED_LAUNCHES:
                self.earlier.append(self.latest)
        self._tokens_before = self.tokens_total
        self._inference_ns += self._span_ns()
        self._first_start_ns, self._last_end_ns, self.last_t_ns = None, 0, 0
        self.launch, self.launches = launch, self.launches + 1
        self.hello, self.bye = None, None
        self._kernel_warnings = {}
        self._visiting = False

    def _count(self, record: AnyRecord) -> None:
        match record:
            case Tokens():
                self.tokens_total += len(record.ids)
                self._extend(record.start_ns, record.end_ns, record.t_ns)
            case Prefill():
                self._extend([record.start_ns], [record.end_ns], record.t_ns)
            case Trim():
                self.trims += 1
            case Evict():
                self.evictions += 1
                self.kernel_evictions += self._answers_kernel(record)
            case MemoryWarning(origin="kernel"):
                self._remember(record.n)
            case _:
                self._read(record)

    def _read(self, record: AnyRecord) -> None:
        match record:
            case Hello():
                self._on_hello(record)
            case Bye():
                self.bye = record
            case Breadcrumb():
                self.last_breadcrumb = plain(f"{record.about}: {record.detail}")
            case Sample():
                self.foreground = record.foreground or self._visiting
                self.thermal = record.thermal
            case Lifecycle(origin="scenario"):
                self._visiting = record.event == "background"
            case Lifecycle():
                self.foreground = record.event == "foreground"
            case _:
                pass

    def _on_hello(self, record: Hello) -> None:
        self.hello = record
        self.stand_in = self.stand_in or record.stand_in
        if record.boot_time_s is not None:
            first_s = self.boot_times_s[0] if self.boot_times_s else record.boot_time_s
            self.boot_times_s = (first_s, record.boot_time_s)

    def _answers_kernel(self, record: Evict) -> bool:
        if record.reason != "memory_warning":
            return False
        return any(n in self._kernel_warnings for n in record.warnings)

    def _remember(self, n: int) -> None:
        self._kernel_warnings[n] = None
        if len(self._kernel_warnings) > _REMEMBERED_WARNINGS:
            del self._kernel_warnings[next(iter(self._kernel_warnings))]

    def _extend(self, starts: Sequence[int], ends: Sequence[int], written_ns: int) -> None:
        # A prediction is over before its record is written: a time after that is not believed.
        if not starts or not ends:
            return
        if self._first_start_ns is None:
            self._first_start_ns = starts[0]
        self._last_end_ns = max(self._last_end_ns, min(ends[-1], written_ns))

    def _span_ns(self) -> int:
        if self._first_start_ns is None:
            return 0
        return max(0, self._last_end_ns - self._first_start_ns)
