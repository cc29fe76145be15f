"""`fleet devices`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from orchestrator.domain.errors import NoPhoneError

app = typer.Typer(rich_markup_mode=None)

DEFAULT_CONFIG = Path("fleet.yaml")


@app.command()
def devices(
    config: Annotated[Path | None, typer.Option(help="The configuration.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print a JSON list on stdout.")] = False,
) -> None:
    """List the phones that are attached, with their alias, model, iOS and UDID.

    Example: fleet devices --json
    """
    import anyio
    import msgspec

    from orchestrator.cli.attached import listed_phones

    rows, remarks = anyio.run(
        listed_phones, config or (DEFAULT_CONFIG if DEFAULT_CONFIG.exists() else None)
    )
    if json:
        print(msgspec.json.format(msgspec.json.encode(rows), indent=2).decode())
    else:
        for row in rows:
            print(f"{row.alias:<16} {row.model:<18} iOS {row.os:<8} {row.udid}  {row.note}")
    from orchestrator.cli.printing import note

    for remark in remarks:
        note(remark)
    if not rows:
        raise NoPhoneError(
            "no phone is attached", remedy="Connect an iPhone, or try `fleet virtual serve`"
        )
