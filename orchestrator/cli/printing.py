"""What `fleet` prints: JSON and results on stdout, everything else on stderr."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import msgspec

from orchestrator.runlog.layout import RunPaths

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.runlog.documents import SummaryDocument


def note(text: str) -> None:
    """Print one remark on stderr, without what a terminal would obey."""
    print("".join(char if char.isprintable() else " " for char in text), file=sys.stderr)


def print_json(summary: SummaryDocument) -> None:
    """Print the summary as one JSON document on stdout."""
    print(msgspec.json.format(msgspec.json.encode(summary), indent=2).decode())


def print_report(run: Path, summary: SummaryDocument) -> None:
    """Print the table of a run and where its reports are."""
    from orchestrator.report.table import summary_lines
    from orchestrator.runlog.documents import PlanDocument, VerdictDocument
    from orchestrator.runlog.files import read_document

    paths = RunPaths(run)
    plan = read_document(paths.plan, PlanDocument)
    directories = [phone.directory for phone in plan.phones]
    directories += [phone.directory for phone in plan.absent]
    verdicts = [read_document(paths.device(name).verdict, VerdictDocument) for name in directories]
    for line in summary_lines(summary, verdicts):
        print(line)
    print(f"report: {paths.html}")
