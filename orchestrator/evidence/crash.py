"""Crash (309, 109) and resource (385, 185) reports."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from orchestrator.evidence.fields import count, mapping, text, texts
from orchestrator.evidence.frames import faulting_backtrace
from orchestrator.evidence.reports import CrashReport, ExcResourceReport, ReportHeader

if TYPE_CHECKING:
    from orchestrator.evidence.fields import Json

_WATCHDOG_EVENT: Final = re.compile(r"WatchdogEvent: ([A-Za-z-]{1,64})")
_QUIT_TOO_SLOWLY: Final = re.compile(r"[Ff]ailed to terminate gracefully")
_THERMAL_STATE: Final = re.compile(r"Thermal State:\s*([A-Za-z]{1,32})")
_THERMAL_LEVEL: Final = re.compile(r"Thermal Level:\s*([0-9]{1,4})")
_CODE_IN_TEXT: Final = re.compile(r"\bcode:\s*(0x[0-9a-fA-F]{1,16})")
_LIMIT_MIB: Final = re.compile(r"[Ll]imit[ =:]{1,3}([0-9]{1,9}) ?MB")

# Fields of the text form, one a line: `Process:  SoakHarness [501]`.
_PROCESS: Final = re.compile(r"^Process:[ \t]*.{0,256}?\[([0-9]{1,9})\]", re.MULTILINE)
_EXCEPTION: Final = re.compile(
    r"^Exception Type:[ \t]*([A-Z_]{1,64})(?:[ \t]*\(([A-Z0-9_ ]{1,64})\))?", re.MULTILINE
)
_TERMINATION: Final = re.compile(
    r"^Termination Reason:[ \t]*(?:Namespace )?([A-Z]{1,32}),?[ \t]*(?:Code )?"
    r"(0x[0-9a-fA-F]{1,16}|[0-9]{1,12})",
    re.MULTILINE,
)
_NUMBER: Final = re.compile(r"0x[0-9a-fA-F]{1,16}|[0-9]{1,19}")
_ROLE: Final = re.compile(r"^Role:[ \t]*([A-Za-z ]{1,32})", re.MULTILINE)
_SUBTYPE: Final = re.compile(r"^Exception Subtype:[ \t]*(.{1,256})", re.MULTILINE)


def parse_crash(header: ReportHeader, body: Json) -> CrashReport:
    """Return a crash report with a JSON body (309)."""
    exception, termination = mapping(body, "exception"), mapping(body, "termination")
    reasons = "\n".join(
        (
            text(termination, "reasons", "details") or "",
            *texts(termination, "reasons"),
            *texts(termination, "details"),
        )
    )
    level = _group(_THERMAL_LEVEL, reasons)
    return CrashReport(
        header=header,
        pid=count(body, "pid"),
        exception=text(exception, "type"),
        signal=text(exception, "signal"),
        namespace=text(termination, "namespace"),
        code=_code(termination, reasons),
        message=_last_words(body) or text(exception, "message", "subtype"),
        foreground=_foreground(text(body, "procRole")),
        watchdog_event=_watchdog_event(reasons),
        thermal_state=_group(_THERMAL_STATE, reasons),
        thermal_level=int(level) if level else None,
        fatal=body.get("isNonFatal") not in (True, 1),
        backtrace=faulting_backtrace(body),
    )


def parse_text_crash(header: ReportHeader, body: str) -> CrashReport:
    """Return a crash report with a text body (109, up to iOS 14)."""
    exception, termination = _EXCEPTION.search(body), _TERMINATION.search(body)
    pid, level = _group(_PROCESS, body), _group(_THERMAL_LEVEL, body)
    return CrashReport(
        header=header,
        pid=int(pid) if pid else None,
        exception=exception[1] if exception else None,
        signal=exception[2] if exception else None,
        namespace=termination[1] if termination else None,
        code=_number(termination[2]) if termination else None,
        message=_group(_SUBTYPE, body),
        foreground=_foreground(_group(_ROLE, body)),
        watchdog_event=_watchdog_event(body),
        thermal_state=_group(_THERMAL_STATE, body),
        thermal_level=int(level) if level else None,
    )


def parse_exc_resource(header: ReportHeader, body: Json) -> ExcResourceReport:
    """Return a resource report with a JSON body (385)."""
    exception = mapping(body, "exception")
    message = text(exception, "message") or _last_words(body)
    limit = _group(_LIMIT_MIB, message or "")
    return ExcResourceReport(
        header=header,
        pid=count(body, "pid"),
        resource=text(exception, "subtype"),
        limit_mib=int(limit) if limit else None,
        message=message,
        fatal=bool(mapping(body, "termination")) and body.get("isNonFatal") not in (True, 1),
    )


def parse_text_exc_resource(header: ReportHeader, body: str) -> ExcResourceReport:
    """Return a resource report with a text body (185)."""
    pid, limit = _group(_PROCESS, body), _group(_LIMIT_MIB, body)
    return ExcResourceReport(
        header=header,
        pid=int(pid) if pid else None,
        resource="MEMORY" if "MEMORY" in body else None,
        limit_mib=int(limit) if limit else None,
        message=_group(_SUBTYPE, body),
        fatal=_TERMINATION.search(body) is not None,
    )


def _last_words(body: Json) -> str | None:
    """Return the first line of application specific information: Swift prints its error there."""
    asi = mapping(body, "asi")
    for image in asi:
        said = [text(asi, image) or "", *texts(asi, image)]  # older systems print no list
        words = next((line for line in said if line.strip()), None)
        if words is not None:
            return words
    return None


def _code(termination: Json, reasons: str) -> int | None:
    """Return the termination's code, a number or a text; some systems state it in words only."""
    code = count(termination, "code")
    if code is not None:
        return code
    stated = _NUMBER.fullmatch(text(termination, "code") or "")
    in_words = _group(_CODE_IN_TEXT, reasons)
    return _number(stated[0]) if stated else _number(in_words) if in_words else None


def _number(digits: str) -> int:
    return int(digits, 16 if digits.casefold().startswith("0x") else 10)


def _watchdog_event(reasons: str) -> str | None:
    if _QUIT_TOO_SLOWLY.search(reasons):
        return "process-exit"
    return _group(_WATCHDOG_EVENT, reasons)


def _foreground(role: str | None) -> bool | None:
    return None if role is None else role.strip().startswith("Foreground")


def _group(form: re.Pattern[str], source: str) -> str | None:
    match = form.search(source)
    return match[1] if match else None
