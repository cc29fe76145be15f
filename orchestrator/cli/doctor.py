"""`fleet doctor`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(rich_markup_mode=None)


@app.command()
def doctor(
    virtual: Annotated[
        bool, typer.Option("--virtual", help="For a run with virtual phones of its own.")
    ] = False,
    config: Annotated[Path | None, typer.Option(help="The configuration.")] = None,
    output: Annotated[Path, typer.Option(help="Where run folders go.")] = Path("runs"),
    ipa: Annotated[
        Path | None, typer.Option(help="Check this signed app instead of Xcode and its signing.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")] = False,
) -> None:
    """Say whether a soak could start now, and what a person must do if not.

    Exits 0 only if one could; else 3 for phones, 5 for the build, 6 for held phones, 4 for the
    host. Example: fleet doctor --json
    """
    from functools import partial

    import anyio
    import msgspec

    from orchestrator.cli.examination import examine
    from orchestrator.cli.soak_options import config_in_use
    from orchestrator.soak.doctor.check import exit_code_of

    file = config_in_use(config)
    diagnosis = anyio.run(partial(examine, file, output, virtual=virtual, ipa=ipa))
    if json:
        print(msgspec.json.format(msgspec.json.encode(diagnosis), indent=2).decode())
    else:
        for check in diagnosis.checks:
            remedy = f"\n{'':<29}{check.remedy}" if check.remedy else ""
            text = f"{check.state:<8} {check.subject:<12} {check.name:<16} {check.facts}"
            print("".join(char if char.isprintable() else " " for char in text) + remedy)
        print("a soak could start now" if diagnosis.can_start else "no soak could start now")
    sys.exit(exit_code_of(diagnosis))
