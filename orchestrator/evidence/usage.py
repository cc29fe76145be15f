"""CPU (202, 206), wakeup (142) and disk write (145) reports: text, one fact a line."""

from __future__ import annotations

import re
from typing import Final

from orchestrator.evidence.reports import ReportHeader, UsageReport

_PID: Final = re.compile(
    r"^(?:PID|Process):[ \t]*.{0,256}?\[?([0-9]{1,9})\]?[ \t\r]{0,8}$", re.MULTILINE
)
_EVENT: Final = re.compile(r"^Event:[ \t]*(.{1,64}?)[ \t\r]{0,8}$", re.MULTILINE)
_ACTION: Final = re.compile(r"^Action taken:[ \t]*(.{1,128}?)[ \t\r]{0,8}$", re.MULTILINE)
_USAGE: Final = re.compile(r"^(?:CPU|Wakeups|Writes):[ \t]*(.{1,512}?)[ \t\r]{0,8}$", re.MULTILINE)
_PRODUCT: Final = re.compile(
    r"^Hardware [Mm]odel:[ \t]*([A-Za-z]{1,32}[0-9]{1,3},[0-9]{1,3})", re.MULTILINE
)


def parse_usage(header: ReportHeader, body: str) -> UsageReport:
    """Return a usage report; what the text does not say is None."""
    pid, action = _group(_PID, body), _group(_ACTION, body)
    acted = action is not None and action.casefold() != "none"
    return UsageReport(
        header=header,
        pid=int(pid) if pid else None,
        event=_group(_EVENT, body),
        message=_group(_USAGE, body),
        fatal=acted if action is not None else header.bug_type == "206",
    )


def product_in_text(body: str) -> str | None:
    """Return the ProductType that a text body names."""
    return _group(_PRODUCT, body)


def _group(form: re.Pattern[str], source: str) -> str | None:
    match = form.search(source)
    return match[1] if match else None
