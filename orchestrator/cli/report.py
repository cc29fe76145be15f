"""`fleet report RUN`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli.printing import print_json, print_report

app = typer.Typer(rich_markup_mode=None)


@app.command()
def report(
    run: Annotated[Path, typer.Argument(help="A run directory, for example runs/latest.")],
    json: Annotated[bool, typer.Option("--json", help="Print summary.json on stdout.")] = False,
    github: Annotated[
        bool, typer.Option("--github", help="Annotations on stdout, and the step summary.")
    ] = False,
) -> None:
    """Remake JUnit, HTML, Markdown and JSON of a run from its directory.

    Works on a run that was killed at any instant, not on one that still goes on. Exits 0 when the
    reports are written, whatever they say. Example: fleet report runs/latest
    """
    from orchestrator.cli.lineage import reported
    from orchestrator.cli.living import refuse_while_it_runs

    refuse_while_it_runs(run)
    summary = reported(run)
    if github:
        _tell_github(run)
    elif json:
        print_json(summary)
    else:
        print_report(run, summary)


def _tell_github(run: Path) -> None:
    """Print annotations, and append the summary to the file that GitHub names."""
    from orchestrator.report.annotations import annotation_lines
    from orchestrator.report.rundir import read_run
    from orchestrator.runlog.documents import VerdictDocument
    from orchestrator.runlog.files import read_document

    record = read_run(run)
    plan = record.plan
    directories = [phone.directory for phone in plan.phones] if plan else []
    directories += [phone.directory for phone in plan.absent] if plan else []
    verdicts = [
        read_document(record.paths.device(name).verdict, VerdictDocument) for name in directories
    ]
    required = plan.requires.checks if plan else []
    for line in annotation_lines(verdicts, required):
        print(line)
    target = os.environ.get("GITHUB_STEP_SUMMARY")
    if target:
        with Path(target).open("ab") as file:
            file.write(record.paths.summary_md.read_bytes())
