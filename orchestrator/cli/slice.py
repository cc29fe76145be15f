"""`fleet slice FOLDER`: one host's part of a cluster run; an agent starts it, people do not."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from orchestrator.domain.errors import FleetError

app = typer.Typer(rich_markup_mode=None)


@app.command(name="slice")
def slice_(
    folder: Annotated[Path, typer.Argument(help="The agent's folder of the slice.")],
    stop: Annotated[bool, typer.Option("--stop", help="Only end it in order.")] = False,
) -> None:
    """Carry out or go on with one host's part of a run; the report is made elsewhere."""
    import anyio

    from orchestrator.cli.slice_run import run_slice
    from orchestrator.cluster.slice_folder import Ending, SliceFolder

    place = SliceFolder(folder.parent.parent, folder.name)
    with place.held() as ours:
        if not ours:
            return
        try:
            anyio.run(run_slice, place, stop)
        except FleetError as error:
            place.end(Ending(error.exit_code, str(error)))
            raise
        place.end(Ending(0))
