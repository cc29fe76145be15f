"""The raw diagnostic reports of a phone, read again and tied to its launches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.evidence.classify import REPORT_TOLERANCE_S, classify
from orchestrator.evidence.parse import read_reports, without_copies

if TYPE_CHECKING:
    from orchestrator.evidence.classified import ClassifiedReport
    from orchestrator.evidence.reports import ParsedReport
    from orchestrator.report.rundir import PhoneRecord
    from orchestrator.runlog.layout import AttemptPaths


def read_raw_reports(
    phone: PhoneRecord, app_name: str
) -> tuple[tuple[ParsedReport, ClassifiedReport], ...]:
    """Return all reports of a phone, each judged against the launches of its own attempt."""
    hello = phone.hello()
    found: list[tuple[ParsedReport, ClassifiedReport]] = []
    for attempt, evidence in phone.attempts:
        offset_s = evidence.clock_offset_s
        if offset_s is None and phone.device is not None:
            offset_s = phone.device.clock_offset_s
        found += [
            (
                report,
                classify(
                    report,
                    app_name=app_name,
                    lc_uuid=hello.lc_uuid if hello else None,
                    launches=evidence.launches,
                    clock_offset_s=offset_s or 0.0,
                    clock_offset_end_s=evidence.clock_offset_end_s,
                    tolerance_s=REPORT_TOLERANCE_S,
                ),
            )
            for report in _parsed(phone, attempt)
        ]
    return tuple(found)


def _parsed(phone: PhoneRecord, attempt: AttemptPaths) -> list[ParsedReport]:
    files = sorted(path for path in attempt.reports.rglob("*") if path.is_file())
    return without_copies(
        report for path in files for report in read_reports(path, phone.name_of(path))
    )
