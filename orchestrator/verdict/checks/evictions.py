"""Checks of evictions: every warning is answered, and the answer frees memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from orchestrator.runlog.telemetry import (
    AnyRecord,
    Evict,
    Fault,
    Hello,
    Lifecycle,
    Load,
    MemoryWarning,
    Prefill,
    State,
    Tokens,
)
from orchestrator.verdict.check import Check, CheckInfo, Limit, Setting
from orchestrator.verdict.deviation import DeviationKind

if TYPE_CHECKING:
    from orchestrator.runlog.documents import CheckDocument
    from orchestrator.verdict.check import Closing

_MOST_STARTS: Final = 1  # predictions that may start between a warning and its eviction
_MOST_WAITING: Final = 1024
_KEEPS_WARNINGS: Final = frozenset({"trim", "reload", "audit"})


@dataclass(slots=True)
class _Waiting:
    """A warning that no eviction has answered yet."""

    record: MemoryWarning
    binding: bool  # a live, non-empty state was there
    starts: int = 0  # predictions that started after it


class EvictOnWarning(Check):
    """A warning with something to evict is answered before a second prediction starts (R7)."""

    info = CheckInfo(
        id="evict.on-warning",
        title="Every memory warning evicts the context",
        meaning=(
            "After a warning that finds a live, non-empty state the state is evicted before more"
            " than one further prediction starts; warnings that come together share one eviction."
        ),
        causes=(
            "the handler is registered on a queue that the decode loop blocks",
            "the warning trims instead of evicting",
            "the handler waits for the end of the turn",
        ),
        what_to_do=(
            "find the `memory_warning` that the sentence names and what was predicted after it",
            "register the handler on a queue of its own; finish only the prediction in flight",
        ),
    )

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._answered = 0
        self._waiting: dict[int, _Waiting] = {}
        self._last_seen = 0
        self._last_answered = 0
        self._live = False
        self._evicting = False
        self._last_start_ns = -1
        self._reasons = {"memory_warning"}  # for which an eviction may happen now

    def observe(self, record: AnyRecord) -> None:
        """Take the next record."""
        for deviation in self.setting.expectation.deviations:
            if deviation.kind is DeviationKind.EVICT:
                self.faults.note(deviation.text, deviation.launch, deviation.seq)
        match record:
            case MemoryWarning():
                self._on_warning(record)
            case Prefill() if record.purpose != "audit":
                self._on_prefill(record)
            case Tokens():
                for start_ns in record.start_ns:
                    self._on_start(start_ns)
            case Evict():
                self._on_evict(record)
            case State() if record.purpose != "audit":
                self._on_state(record)
            case _:
                self._on_circumstance(record)

    def _on_circumstance(self, record: AnyRecord) -> None:
        match record:
            case Hello():
                self._waiting.clear()
                self._last_seen = self._last_answered = 0
                self._live = self._evicting = False
                self._last_start_ns = -1
                self._reasons = {"memory_warning"}
            case Lifecycle(event="background"):
                self._reasons.add("background")
            case Lifecycle():
                self._reasons.discard("background")
            case Fault():
                self._reasons.add("fault")
            case _:
                pass

    def _on_warning(self, record: MemoryWarning) -> None:
        if record.n != self._last_seen + 1:
            self.faults.add(record, f"warning {record.n} came after warning {self._last_seen}")
        self._last_seen = record.n
        if self._evicting or not self._live:
            return  # the eviction under way answers it, or there is nothing to evict
        binding = self.setting.expectation.row_count > 0
        self._waiting[record.n] = _Waiting(record, binding)
        if len(self._waiting) > _MOST_WAITING:
            del self._waiting[next(iter(self._waiting))]

    def _on_prefill(self, record: Prefill) -> None:
        # A chunk is recorded after it: a warning in the first chunk is recorded before its rows.
        for waiting in self._waiting.values():
            if record.start_ns < waiting.record.t_ns < record.end_ns:
                waiting.binding = True
        self._on_start(record.start_ns)

    def _on_start(self, start_ns: int) -> None:
        if start_ns <= self._last_start_ns:
            return  # the first sample of a turn repeats the times of the prompt's last chunk
        self._last_start_ns = start_ns
        if self._waiting:
            self._count_start(start_ns)

    def _count_start(self, start_ns: int) -> None:
        for n, waiting in list(self._waiting.items()):
            waiting.starts += start_ns > waiting.record.t_ns
            if waiting.starts > _MOST_STARTS and waiting.binding:
                self.faults.add(
                    waiting.record,
                    f"{waiting.starts} predictions started after warning {n} and nothing was"
                    " evicted",
                    waiting.starts,
                )
                del self._waiting[n]

    def _on_evict(self, record: Evict) -> None:
        self._evicting = True
        if record.reason not in self._reasons:
            self.faults.add(record, f"an eviction for {record.reason} that never happened")
        if record.reason == "memory_warning":
            self._judge_answer(record)
        self._waiting.clear()

    def _judge_answer(self, record: Evict) -> None:
        named = record.warnings
        ordered = sorted(set(named)) == named
        if not named or not ordered or not self._last_answered < named[0] <= named[-1]:
            self.faults.add(record, "an eviction names no warning, or one that was answered before")
        elif named[-1] > self._last_seen:
            self.faults.add(record, f"an eviction answers warning {named[-1]}, which never came")
        else:
            self._answered += len(named)
        if named:
            self._last_answered = max(self._last_answered, *named)

    def _on_state(self, record: State) -> None:
        self._live = record.action == "made"
        if self._live:
            self._evicting = False
        if record.action == "released" and record.purpose not in _KEEPS_WARNINGS:
            self._evicting = False
            self._waiting.clear()

    def finish(self, closing: Closing) -> CheckDocument:
        """Return the result; the value is the number of warnings answered."""
        if self.faults.count:
            return self.failed(self.faults.count, "warnings unanswered or wrongly answered", 0)
        if not self._answered:
            return self.unmeasured("no memory warning found a live, non-empty state")
        return self.passed(self._answered, "warnings answered")


class EvictFreesMemory(Check):
    """After an eviction the footprint is lower by most of the state."""

    info = CheckInfo(
        id="evict.frees-memory",
        title="An eviction gives the memory back",
        meaning=(
            "The footprint after the state's release is lower than before the eviction by at least"
            " three quarters of the state's bytes, a few memory pages aside."
        ),
        causes=(
            "a second reference keeps the state alive",
            "the state's memory is freed into a cache of the allocator",
            "the buffers behind the state are pooled",
        ),
        what_to_do=(
            "look for a second owner of the state (Instruments, Allocations)",
            "compare `footprint` of the `evict` record and of the `state released` after it",
        ),
        limits=(
            Limit("freed_ratio", 0.75, "of the state's bytes", "that must be gone"),
            Limit("tolerance_pages", 16.0, "pages of the host", "that may be missing of it"),
        ),
    )
    _VISIBLE_RATIO: Final = 0.25

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._page_bytes = 0
        self._loaded_footprint: int | None = None
        self._visible: bool | None = None  # whether making a state shows in the footprint
        self._evict: Evict | None = None
        self._least_ratio: float | None = None

    def observe(self, record: AnyRecord) -> None:
        """Take the next record."""
        match record:
            case Hello():
                self._page_bytes = record.page_size * record.memory_scale
                self._loaded_footprint = self._evict = None
            case Load():
                self._loaded_footprint = record.footprint
            case Evict():
                self._evict = record
            case State(action="made"):
                self._calibrate(record)
            case State(action="released") if self._evict is not None:
                self._measure(record, self._evict)
                self._evict = None
            case _:
                pass

    def _calibrate(self, record: State) -> None:
        """Learn from the launch's first state whether this footprint shows states at all."""
        if self._loaded_footprint is not None and self._visible is None:
            step = record.footprint - self._loaded_footprint
            self._visible = step >= self._VISIBLE_RATIO * record.bytes
        self._loaded_footprint = None

    def _measure(self, record: State, evict: Evict) -> None:
        if record.bytes <= 0:
            self.faults.add(record, f"a state of {record.bytes} bytes was released")
            return
        freed = evict.footprint - record.footprint
        ratio = freed / record.bytes
        if self._least_ratio is None or ratio < self._least_ratio:
            self._least_ratio = ratio
        slack = self.limit("tolerance_pages") * self._page_bytes
        needed = self.limit("freed_ratio") * record.bytes - slack
        if freed < needed:
            mib = 1024**2
            self.faults.add(
                record,
                f"the eviction freed {freed / mib:.1f} MiB of a state of"
                f" {record.bytes / mib:.1f} MiB",
                ratio,
            )

    def finish(self, closing: Closing) -> CheckDocument:
        """Return the result; the value is the least part of a state that was freed."""
        limit = self.limit("freed_ratio")
        if self._visible is False and not self.setting.phone.virtual:
            return self.skipped("no visible ledger: making a state did not raise the footprint")
        if self.faults.count:
            return self.failed(self.faults.value, "of the state's bytes", limit)
        if self._least_ratio is None:
            return self.unmeasured("no eviction released a state")
        return self.passed(round(self._least_ratio, 4), "of the state's bytes", limit)
