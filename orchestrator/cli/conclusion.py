"""The end of every command that soaks: print, remember, tell, forget the private state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.cli.aftermath import after_run
from orchestrator.cli.printing import print_json, print_report
from orchestrator.soak.run_state import RunStateFolder

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.config.model import FleetConfig
    from orchestrator.domain.outcome import ExitCode
    from orchestrator.runlog.documents import SummaryDocument


def conclude(run: Path, summary: SummaryDocument, config: FleetConfig, *, json: bool) -> ExitCode:
    """Print a run whose report is written, and do what follows it; return the exit code."""
    if json:
        print_json(summary)
    else:
        print_report(run, summary)
    exit_code = after_run(run, summary, config)
    RunStateFolder.of(summary.run_id).remove()  # last: until here a resume finds its way
    return exit_code
