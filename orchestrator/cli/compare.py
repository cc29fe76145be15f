"""`fleet compare RUN BASE`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.domain.outcome import ExitCode

app = typer.Typer(rich_markup_mode=None)

SIDE = "A run directory, the start of a run id, or a baseline."


@app.command()
def compare(
    run: Annotated[str, typer.Argument(help=SIDE)],
    base: Annotated[str, typer.Argument(help=SIDE)],
    runs: Annotated[Path, typer.Option(help="The folder of the runs.")] = Path("runs"),
    config: Annotated[
        Path | None, typer.Option(help="Take the limits of its `regression:` block.")
    ] = None,
) -> None:
    """Compare runs, like with like; phones with other stamps are refused, and it says why.

    Exit codes: 0 no regression, 1 regression, 4 refused or too few runs to tell.
    Example: fleet compare runs/latest main
    """
    from orchestrator.cli.living import resolve_ended
    from orchestrator.config.load import load_config
    from orchestrator.history.comparison import compare as compared
    from orchestrator.history.store import DATABASE_NAME, History
    from orchestrator.history.wording import comparison_lines, verdict_line

    history = History(runs / DATABASE_NAME)
    limits = load_config(config).regression.max_loss_percent if config else {}
    candidate, known = resolve_ended(history, run), resolve_ended(history, base)
    result = compared(candidate, known, history.runs(), max_loss_percent=limits)
    for line in (*comparison_lines(result), verdict_line(result)):
        print(line)
    if result.worse:
        sys.exit(ExitCode.PRODUCT_FAILED)
    sys.exit(ExitCode.OK if result.conclusive else ExitCode.INCONCLUSIVE)
