"""`fleet serve [RUN]`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(rich_markup_mode=None)


@app.command()
def serve(
    run: Annotated[
        str | None,
        typer.Argument(help="A run directory or id; default the latest, also when it changes."),
    ] = None,
    output: Annotated[Path, typer.Option(help="Where run folders are.")] = Path("runs"),
    host: Annotated[
        str | None,
        typer.Option(help="Listen here instead of on loopback; whoever reaches it can read."),
    ] = None,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port; 0 takes a free one.")
    ] = 8808,
) -> None:
    """Show a run in a browser while it goes on: read-only, on this machine, until Ctrl-C.

    Example: fleet serve
    """
    from orchestrator.cli.owner import owner_lives
    from orchestrator.cli.run_argument import run_folder
    from orchestrator.live.web.server import serve as serve_until_signal
    from orchestrator.live.web.source import RunSource

    run_folder(run, output)  # refuses before anything listens
    source = RunSource(lambda: run_folder(run, output), owner_lives)
    serve_until_signal(source, host, port, _announce)


def _announce(address: str) -> None:
    print(f"{address}\nServing until Ctrl-C.", flush=True)
