"""Why a phone's soak ended: one cause, joined from facts that are independent of each other.

No fact is enough alone: iOS rate-limits its reports, so a missing one proves nothing; an exit
signal does not say who sent it; the app's own `bye` can be a lie. The rules are asked in order and
the first that knows an answer gives it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from orchestrator.domain.outcome import Cause, Outcome, outcome_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from orchestrator.evidence.classified import ClassifiedReport
    from orchestrator.verdict.ending import Ending

_MIB: Final = 1024**2
_SIGKILL: Final = 9
_SIGTERM: Final = 15
_OWN_LIMIT: Final = "per-process-limit"
_CRASH_SIGNALS: Final = {
    3: "SIGQUIT",
    4: "SIGILL",
    5: "SIGTRAP",
    6: "SIGABRT",
    7: "SIGEMT",
    8: "SIGFPE",
    10: "SIGBUS",
    11: "SIGSEGV",
    12: "SIGSYS",
}  # fmt: skip - Darwin's numbers, <sys/signal.h>
_CONNECTION_LOST: Final = frozenset({Cause.DEVICE_LOST, Cause.TELEMETRY_LOST})
NEAR_LIMIT_RATIO: Final = 0.9  # a killed app above it died of memory, report or not


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """A cause and the sentence that gives its facts."""

    cause: Cause
    sentence: str

    def outcome(self, ending: Ending) -> Outcome:
        """Return the outcome that the cause gives."""
        return outcome_of(self.cause, footprint_over_limit=ending.footprint_over_limit)


def diagnose(ending: Ending) -> Diagnosis:
    """Return why the soak ended, checks not considered."""
    for rule in _RULES:
        found = rule(ending)
        if found is not None:
            return found
    return Diagnosis(
        Cause.TELEMETRY_LOST,
        "The records stop without a farewell and nobody saw how the app ended.",
    )


def _memory(ending: Ending) -> str:
    if ending.last_footprint_bytes is None:
        return "its footprint was not recorded"
    used = f"its last footprint was {ending.last_footprint_bytes / _MIB:.0f} MiB"
    ratio = ending.footprint_over_limit
    if ratio is None or ending.limit_bytes is None:
        return f"{used}, the limit is not known"
    return f"{used}, {ratio:.0%} of the limit of {ending.limit_bytes / _MIB:.0f} MiB"


def _by_unfinished_run(ending: Ending) -> Diagnosis | None:
    if ending.run_finished:
        return None
    return Diagnosis(
        Cause.USER_ABORTED, "The run itself was ended before it was over; nothing can be concluded."
    )


def _by_reports(ending: Ending) -> Diagnosis | None:
    """The phone's own reports about this app in the time of this soak."""
    for report in ending.reports:
        found = _by_report(report, ending)
        if found is not None and not _outlived(ending, found):
            return found
    return None


def _outlived(ending: Ending, found: Diagnosis) -> bool:
    """Return whether a report of the app's death is refuted: it was seen alive, or left cleanly."""
    if found.cause is Cause.DEVICE_REBOOTED:
        return False
    if ending.alive_at_end:
        return True
    left = ending.exit is not None and ending.exit.exit_code == 0 and not ending.exit.signal
    return left and ending.bye_reason == "completed"


def _by_report(report: ClassifiedReport, ending: Ending) -> Diagnosis | None:
    summary = report.summary.rstrip(".")
    match report.kind:
        case "jetsam" if report.reason is not None:
            return _by_jetsam(report, ending)
        case "exc_resource" if _is_memory_kill(report, ending):
            text = f"iOS killed the app for passing its memory limit; {_memory(ending)}."
            return Diagnosis(Cause.JETSAM_PER_PROCESS_LIMIT, text)
        # What ends an app that did not end when we asked for it is our kill, whatever it is called.
        case "watchdog" if not ending.ended_by_us:
            return Diagnosis(Cause.WATCHDOG, f"The watchdog ended the app: {summary}.")
        case "crash":
            cause = Cause.THERMAL_KILL if report.thermal_kill else Cause.CRASH
            verb = "was ended because the phone was too hot" if report.thermal_kill else "crashed"
            return Diagnosis(cause, f"The app {verb}: {summary}.")
        case "panic":
            return Diagnosis(Cause.DEVICE_REBOOTED, f"The phone panicked: {summary}.")
        case _:
            return None


def _is_memory_kill(report: ClassifiedReport, ending: Ending) -> bool:
    """Return whether a resource report is of a death: iOS writes one for a warning too."""
    killed = ending.exit is not None and ending.exit.signal == _SIGKILL
    return bool(report.fatal) and killed and "memory" in (report.reason or "").lower()


def _by_jetsam(report: ClassifiedReport, ending: Ending) -> Diagnosis:
    if report.reason == _OWN_LIMIT:
        text = f"iOS killed the app for passing its memory limit; {_memory(ending)}."
        return Diagnosis(Cause.JETSAM_PER_PROCESS_LIMIT, text)
    text = f"iOS killed the app ({report.reason}); {_memory(ending)}."
    return Diagnosis(Cause.JETSAM_SYSTEM_PRESSURE, text)


def _is_complete(ending: Ending) -> bool:
    """Return whether the app said that it did all there was to do, in every launch."""
    return ending.bye_reason == "completed" and not ending.is_part_missing


def _by_interruption(ending: Ending) -> Diagnosis | None:
    if ending.interrupted_by is None or _is_complete(ending):
        return None
    return Diagnosis(
        Cause.USER_ABORTED,
        f"The run was interrupted by {ending.interrupted_by} before it was over.",
    )


def _by_reboot(ending: Ending) -> Diagnosis | None:
    if not ending.rebooted:
        return None
    return Diagnosis(Cause.DEVICE_REBOOTED, "The phone restarted during the soak.")


def _by_certain_signal(ending: Ending) -> Diagnosis | None:
    """A death that no lab error explains: a crash signal, or a kill near the limit."""
    found = _by_signal(ending)
    certain = found is not None and found.cause in (Cause.CRASH, Cause.KILLED_UNCONFIRMED)
    return found if certain else None


def _by_lab(ending: Ending) -> Diagnosis | None:
    """An error that the session itself met."""
    cause = _hinted(ending)
    if cause is None or (cause in _CONNECTION_LOST and _is_complete(ending)):
        return None  # the phone came back with everything
    if cause is Cause.HANG and ending.foreground is False:
        return Diagnosis(
            Cause.FOREGROUND_LOST, "The app fell silent after it had left the foreground."
        )
    reason = ending.error or cause.replace("_", " ")
    return Diagnosis(cause, f"The session ended early: {reason.rstrip('.')}.")


def _hinted(ending: Ending) -> Cause | None:
    """Return the cause that the session named, None where it is for the verdict to say."""
    try:
        cause = Cause(ending.cause_hint or "")
    except ValueError:
        return None
    return None if cause in (Cause.COMPLETED, Cause.ASSERTION_FAILED) else cause


def _by_signal(ending: Ending) -> Diagnosis | None:
    """The exit event of the developer services, where no report explains it."""
    signal = ending.exit.signal if ending.exit else None
    if not signal or (ending.ended_by_us and signal in (_SIGKILL, _SIGTERM)):
        return None
    if signal in _CRASH_SIGNALS:
        name = _CRASH_SIGNALS[signal]
        return Diagnosis(Cause.CRASH, f"The app ended by {name}; there is no crash report.")
    if signal == _SIGKILL:
        return _killed(ending)
    text = f"The app ended by signal {signal}. {ending.looked_at}."
    return Diagnosis(Cause.UNEXPLAINED_EXIT, text)


def _killed(ending: Ending) -> Diagnosis:
    ratio = ending.footprint_over_limit
    if ratio is not None and ratio >= NEAR_LIMIT_RATIO:
        return Diagnosis(
            Cause.KILLED_UNCONFIRMED,
            f"The app was killed near its memory limit; {_memory(ending)}. No report confirms it.",
        )
    if ending.thermal == "critical":
        return Diagnosis(
            Cause.THERMAL_KILL, "The app was killed while the phone's thermal state was critical."
        )
    if ending.foreground is False:
        return Diagnosis(
            Cause.FOREGROUND_LOST, f"The app was killed in the background; {_memory(ending)}."
        )
    text = f"The app was killed and no report says why; {_memory(ending)}. {ending.looked_at}."
    return Diagnosis(Cause.UNEXPLAINED_EXIT, text)


def _by_farewell(ending: Ending) -> Diagnosis | None:
    """The app's `bye`, where nothing contradicts it."""
    match ending.bye_reason:
        case None:
            return None
        case "completed":
            return Diagnosis(Cause.COMPLETED, "The soak ran to its end.")
        case "stopped" if ending.stopped_by_host:
            return Diagnosis(Cause.USER_ABORTED, "The host stopped the app before its soak ended.")
        case "fault":
            return Diagnosis(
                Cause.EARLY_EXIT, "The app gave up with a fault before its soak ended."
            )
        case _:
            return Diagnosis(Cause.EARLY_EXIT, "The app said goodbye before its soak ended.")


def _by_exit(ending: Ending) -> Diagnosis | None:
    """An exit without a farewell."""
    if ending.exit is None or ending.ended_by_us:
        return None
    crumb = f" while {ending.last_breadcrumb}" if ending.last_breadcrumb else ""
    if ending.exit.exit_code == 0:
        return Diagnosis(Cause.EARLY_EXIT, f"The app exited without a farewell{crumb}.")
    code = "an unknown code" if ending.exit.exit_code is None else f"code {ending.exit.exit_code}"
    text = f"The app exited with {code}{crumb}. {ending.looked_at}."
    return Diagnosis(Cause.UNEXPLAINED_EXIT, text)


def _by_life(ending: Ending) -> Diagnosis | None:
    """Whether the process was there when the soak was over."""
    if ending.alive_at_end is None or not ending.has_records or ending.ended_by_us:
        return None
    if not ending.alive_at_end:
        return _killed(ending)
    if ending.foreground is False:
        return Diagnosis(
            Cause.FOREGROUND_LOST, "The app is alive and was suspended in the background."
        )
    if ending.journal_pulled:
        return Diagnosis(Cause.HANG, "The app was alive at the end and had stopped recording.")
    return Diagnosis(
        Cause.TELEMETRY_LOST, "The app was alive at the end, but its journal could not be pulled."
    )


_RULES: Final[tuple[Callable[[Ending], Diagnosis | None], ...]] = (
    _by_unfinished_run,
    _by_reports,
    _by_interruption,
    _by_reboot,
    _by_certain_signal,
    _by_lab,
    _by_signal,
    _by_farewell,
    _by_exit,
    _by_life,
)
