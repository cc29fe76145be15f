"""Events and records of one phone, one after the other, to what a view shows: pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from orchestrator.live.cleaning import printable
from orchestrator.live.concern import judged
from orchestrator.live.remarks import event_text, record_text
from orchestrator.live.speed import Speed
from orchestrator.live.state import PhoneLive, Remark
from orchestrator.runlog import telemetry
from orchestrator.runlog.events import launch_number

if TYPE_CHECKING:
    from orchestrator.runlog.documents import PlannedPhone
    from orchestrator.runlog.events import Event
    from orchestrator.runlog.telemetry import AnyRecord

_NS: Final = 1e9
_STATE_CHARACTERS: Final = 12  # of a thermal state; iOS names four, a phone may name anything
_RECORDS_DUE: Final = "soak"  # the phase


@dataclass(slots=True)
class _Readings:
    """What the app said in one attempt."""

    newest_ns: int | None = None
    done: bool = False  # `bye` came: no more records are due
    context: int | None = None
    budget: int | None = None
    limit: int | None = None
    trims: int = 0
    evictions: int = 0
    warnings: int = 0
    sample: telemetry.Sample | None = None
    tokens_total: int | None = None
    speed: Speed = field(default_factory=Speed)
    earlier_ns: int = 0  # of the attempt's earlier launches
    earlier_tokens: int = 0

    @property
    def elapsed_ns(self) -> int | None:
        """How long the app has run in all launches of the attempt."""
        return None if self.newest_ns is None else self.earlier_ns + self.newest_ns

    def begin_launch(self) -> None:
        """Take what the app says from here on as another launch's: its counts begin anew."""
        self.earlier_ns += self.newest_ns or 0
        self.earlier_tokens = self.tokens_total or 0
        self.newest_ns, self.done = None, False


@dataclass(slots=True)
class PhoneFold:
    """One phone of a run.

    Args:
        planned: As the plan has it.
        duration_s: Inference time that is wanted, None where it is not limited.
    """

    planned: PlannedPhone
    duration_s: float | None
    attempt: int = 1
    launch: int = 1  # of the attempt: the newest that the host told of
    phase: str = "waiting"
    progress_percent: float | None = None
    cause: str | None = None
    last: Remark | None = None
    launched_s: float | None = None
    gate_battery_percent: float | None = None  # `health.json` of the attempt
    exit_text: str | None = None  # how the app's process went
    _readings: _Readings = field(default_factory=_Readings)

    def on_event(self, event: Event) -> None:
        """Take a remark of the host about this phone."""
        if event.attempt is not None and event.attempt > self.attempt:
            self.attempt, self.cause, self.phase = event.attempt, None, "waiting"
            self._readings, self.launched_s = _Readings(), None
            self.gate_battery_percent = self.exit_text = None
            self.launch = 1
        if event.kind == "phase":
            self.phase, self.progress_percent = printable(str(event.facts.get("name", ""))), None
        elif event.kind == "progress":
            self._on_progress(event)
        elif event.kind == "launched":
            self.launched_s, self.launch = event.at_s, launch_number(event)
            self.exit_text = None
        elif event.kind == "session_ended":
            self.phase, self.progress_percent = "ended", None
            cause = event.facts.get("cause")
            self.cause = printable(cause) if isinstance(cause, str) else None
        text = event_text(event)
        if event.kind == "app_exited":
            self.exit_text = text
        if text is not None:
            self._remark(event.at_s, text)

    def _on_progress(self, event: Event) -> None:
        percent = event.facts.get("percent")
        if isinstance(percent, int | float):
            self.progress_percent = min(100.0, max(0.0, float(percent)))

    def on_record(self, record: AnyRecord) -> None:
        """Take a record of the attempt's app, in the order in which they were written."""
        now = self._readings
        if isinstance(record, telemetry.Hello) and now.newest_ns is not None:
            now.begin_launch()
        now.newest_ns = record.t_ns
        if isinstance(record, telemetry.Tokens):
            now.context = record.n[-1] if record.n else now.context
            now.speed.on_tokens(record.start_ns, record.end_ns)
        elif isinstance(record, telemetry.Sample):
            now.sample, now.context = record, record.n
            now.tokens_total = now.earlier_tokens + record.tokens_total
        else:
            _take(now, record)
        text = record_text(record)
        if text is not None and self.launched_s is not None:
            self._remark(self.launched_s + record.t_ns / _NS, text)

    def _remark(self, at_s: float, text: str) -> None:
        # Events and records lie in two files: who looks late reads the one after the other.
        if self.last is None or at_s >= self.last.at_s:
            self.last = Remark(at_s, printable(text))

    def view(self, silent_s: float | None) -> PhoneLive:
        """Return what is shown now.

        Args:
            silent_s: Age of the newest record, None where there is none.
        """
        now, sample = self._readings, self._readings.sample
        soaking = self.phase == _RECORDS_DUE
        elapsed_s = now.elapsed_ns / _NS if now.elapsed_ns is not None else None
        left_s = None
        if soaking and self.duration_s is not None and elapsed_s is not None:
            left_s = max(0.0, self.duration_s - elapsed_s)
        battery = sample.battery_percent if sample else None
        return judged(
            PhoneLive(
                alias=printable(self.planned.alias),
                model=printable(self.planned.model),
                os=printable(self.planned.os),
                phase=self.phase,
                progress_percent=self.progress_percent,
                attempt=self.attempt,
                elapsed_s=elapsed_s,
                left_s=left_s,
                context_tokens=now.context,
                budget_tokens=now.budget,
                trims=now.trims,
                evictions=now.evictions,
                warnings=now.warnings,
                tokens_total=now.tokens_total,
                footprint_bytes=sample.footprint if sample else None,
                peak_bytes=sample.peak if sample else None,
                limit_bytes=now.limit,
                tokens_per_s=now.speed.tokens_per_s(),
                trend=now.speed.trend(),
                speeds=[round(speed, 1) for speed in now.speed.cells()],
                thermal=printable(sample.thermal)[:_STATE_CHARACTERS] if sample else None,
                battery_percent=battery if battery is not None else self.gate_battery_percent,
                battery_at_gate=battery is None,
                charging=sample.charging if sample else None,
                silent_s=silent_s if soaking and not now.done else None,
                died=self.exit_text if not now.done else None,
                cause=self.cause,
                last=self.last,
            )
        )


def _take(now: _Readings, record: AnyRecord) -> None:
    if isinstance(record, telemetry.Hello):
        now.budget = record.budget
        now.limit = record.footprint + record.available if record.available > 0 else None
    elif isinstance(record, telemetry.Trim):
        now.trims, now.context = now.trims + 1, record.kept
    elif isinstance(record, telemetry.Evict):
        now.evictions, now.context = now.evictions + 1, record.kept
    elif isinstance(record, telemetry.MemoryWarning):
        now.warnings += 1
    elif isinstance(record, telemetry.Prefill):
        now.context = record.start + len(record.ids)
    elif isinstance(record, telemetry.Bye):
        now.done, now.tokens_total = True, now.earlier_tokens + record.tokens_total
