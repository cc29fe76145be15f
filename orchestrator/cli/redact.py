"""`fleet redact RUN --out DIR`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(rich_markup_mode=None)


@app.command()
def redact(
    run: Annotated[Path, typer.Argument(help="A run directory, for example runs/latest.")],
    out: Annotated[Path, typer.Option(help="The folder of the copy; it must not exist.")],
) -> None:
    """Copy a run fit to send out: UDIDs, serials, names, processes and tokens replaced.

    The same original gets the same stand-in throughout one copy. The copy can be read and not
    judged again. Example: fleet redact runs/latest --out for-the-vendor
    """
    from orchestrator.cli.printing import note
    from orchestrator.report.redact.copy import redact_run

    document = redact_run(run, out)
    for entry in document.left_out:
        note(f"left out: {entry.file}: {entry.reason}")
    print(f"redacted copy: {out}")
