"""One line for what happened to a phone; None for what only fills the log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from orchestrator.runlog import telemetry

if TYPE_CHECKING:
    from collections.abc import Callable

    from orchestrator.runlog.events import Event
    from orchestrator.runlog.telemetry import AnyRecord

Facts = dict[str, str | int | float | bool | None]


def event_text(event: Event) -> str | None:
    """Return a remark of the host in words."""
    words = _EVENTS.get(event.kind)
    return None if words is None else words(event.facts)


def record_text(record: AnyRecord) -> str | None:
    """Return a record of the app in words."""
    words = _RECORDS.get(type(record))
    return None if words is None else words(record)


def _exited(facts: Facts) -> str:
    number = facts.get("signal")
    how = f"code {facts.get('exit_code')}" if number is None else f"signal {number}"
    return f"app exited, {how}"


def _loaded(record: telemetry.Load) -> str:
    took = f"{record.ms / 1000:.1f} s" if record.ms >= 1000 else f"{record.ms:.0f} ms"
    return f"model loaded in {took}"


_EVENTS: Final[dict[str, Callable[[Facts], str]]] = {
    "error": lambda facts: f"error: {facts.get('message')}",
    "app_exited": _exited,
    "gap_began": lambda facts: f"phone gone: {facts.get('reason')}",
    "gap_ended": lambda facts: f"phone back after {facts.get('seconds')} s",
    "gate_waits": lambda facts: f"waits: {facts.get('facts') or facts.get('reason')}",
    "report_pulled": lambda facts: f"report pulled: {str(facts.get('path')).rpartition('/')[2]}",
    "retry": lambda facts: f"tried again: {facts.get('reason')}",
    "quarantined": lambda facts: f"quarantined: {facts.get('reason')}",
    "installed": lambda _: "app installed",
    "adopted": lambda _: "app adopted from the run's dead process",
    "stopped_early": lambda _: "stopped early",
    "keeper_gone": lambda _: "keeper gone",
    "model": lambda facts: "model pushed" if facts.get("sent") else "model was there",
}
_RECORDS: Final[dict[type[AnyRecord], Callable[[Any], str]]] = {
    telemetry.Load: _loaded,
    telemetry.Trim: lambda record: f"trim {record.before} to {record.kept}",
    telemetry.Evict: lambda record: f"evict {record.before} to {record.kept}, {record.reason}",
    telemetry.MemoryWarning: lambda record: f"memory warning, {record.origin}",
    telemetry.Lifecycle: lambda record: record.event,
    telemetry.Fault: lambda record: f"fault {record.code}: {record.message}",
    telemetry.Bye: lambda record: f"soak over: {record.reason}",
}
