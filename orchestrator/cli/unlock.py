"""`fleet unlock PHONE`."""

from __future__ import annotations

import time
from typing import Annotated

import typer

app = typer.Typer(rich_markup_mode=None)


@app.command()
def unlock(
    phone: Annotated[str, typer.Argument(help="Alias of a phone, as `fleet who` names it.")],
    kick: Annotated[
        bool, typer.Option("--kick", help="End the run that holds it, even one within its time.")
    ] = False,
) -> None:
    """Free a phone that a run holds, by ending that run: in order first, then by force.

    Without --kick only a run that is past its own limits is ended. Locks of dead processes need no
    unlocking. Exits 6 if the phone stays held. Example: fleet unlock bench-01 --kick
    """
    from orchestrator.cli.ending import end_owner
    from orchestrator.cli.printing import note
    from orchestrator.domain.errors import HeldError
    from orchestrator.soak.locks import holders, lock_folder

    held = [owner for owner in holders(lock_folder()) if owner.alias == phone]
    if not held:
        note(f"{phone} is free")
    for owner in held:
        if not kick and time.time() < owner.expires_s:
            raise HeldError(
                f"{phone} is held by {owner.describe()}, within its time",
                remedy="`--kick` ends that run all the same",
            )
        end_owner(owner, kick=True)
        note(f"{phone} is free: {owner.describe()} was ended")
