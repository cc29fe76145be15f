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
    from orchestrator.report.lines import summary_lines

    for line in summary_lines(summary):
        print(line)
    paths = RunPaths(run)
    print(f"report: {paths.html}")
