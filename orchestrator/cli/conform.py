"""`fleet conform`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(rich_markup_mode=None)


@app.command()
def conform(
    ipa: Annotated[Path, typer.Option(help="The signed app (.ipa or .app) that links SoakProbe.")],
    bundle_id: Annotated[str | None, typer.Option(help="The bundle id that it must have.")] = None,
    devices: Annotated[
        str, typer.Option(help="Phones as `fleet soak` takes them; the first one is used.")
    ] = "all",
    virtual: Annotated[
        bool, typer.Option("--virtual", help="On a virtual phone, for an app of this host.")
    ] = False,
    duration: Annotated[str, typer.Option(help="Inference time.")] = "30s",
    scenario: Annotated[str, typer.Option(help="Whose required checks are marked.")] = "smoke",
    config: Annotated[Path | None, typer.Option(help="The configuration.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="Override a key of the configuration.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="Keep the run there; else it is deleted.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")] = False,
) -> None:
    """Run an app briefly on one phone, and say which checks it can support.

    Exit codes: 0 every check that the scenario requires is supported, whatever it says; 4 not;
    before a start those of `fleet soak`. Example: fleet conform --ipa Yours.ipa --devices bench-01
    """
    import tempfile

    import anyio
    import msgspec

    from orchestrator.cli.compose import SoakOptions, run_soak
    from orchestrator.cli.conformance import conformance_of
    from orchestrator.cli.soak import given_app
    from orchestrator.cli.soak_options import config_in_use, duration_seconds
    from orchestrator.soak.run_state import RunStateFolder

    with tempfile.TemporaryDirectory(prefix="fleet-conform-") as folder:
        options = SoakOptions(
            devices=devices,
            virtual=virtual,
            duration_s=duration_seconds(duration),
            scenario=scenario,
            output=output or Path(folder),
            config=config_in_use(config),
            settings=tuple(settings or ()),
            seed=1,
            include_unlisted=True,
            ipa=given_app(ipa, bundle_id),
            bundle_id=bundle_id,
            one_phone=True,
        )
        run, summary = anyio.run(run_soak, options)
        found = conformance_of(run)
        RunStateFolder.of(summary.run_id).remove()
    if json:
        print(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
    else:
        for line in found.lines():
            print("".join(char if char.isprintable() else " " for char in line))
    sys.exit(found.exit_code)
