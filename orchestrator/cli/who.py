"""`fleet who`."""

from __future__ import annotations

import time
from typing import Annotated

import typer

app = typer.Typer(rich_markup_mode=None)


@app.command()
def who(
    json: Annotated[bool, typer.Option("--json", help="Print a JSON list on stdout.")] = False,
) -> None:
    """List the phones that runs on this host hold: by whom, since when, until when at the latest.

    Example: fleet who --json
    """
    import msgspec

    from orchestrator.cli.printing import note
    from orchestrator.soak.locks import holders, lock_folder

    found = holders(lock_folder())
    if json:
        print(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
        return
    if not found:
        note("no phone is held")
    for owner in found:
        text = (
            f"{owner.alias:<16} {owner.user:<12} process {owner.pid:<8} run {owner.run_id}  "
            f"since {_clock(owner.since_s)}, until {_clock(owner.expires_s)} at the latest"
        )
        print("".join(char if char.isprintable() else " " for char in text))


def _clock(at_s: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at_s))
