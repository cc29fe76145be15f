"""`fleet calibrate`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli.soak_options import ConfigOption, DevicesOption, config_in_use

app = typer.Typer(rich_markup_mode=None)


@app.command()
def calibrate(
    devices: DevicesOption = "all",
    virtual: Annotated[
        bool, typer.Option("--virtual", help="Start virtual phones and calibrate those.")
    ] = False,
    deaths: Annotated[
        int, typer.Option(min=1, max=20, help="Kills per phone: more find the quota of reports.")
    ] = 2,
    output: Annotated[Path, typer.Option(help="Where runs and their history are.")] = Path("runs"),
    config: ConfigOption = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="Override a key: --set harness.x=5.")
    ] = None,
    ipa: Annotated[
        Path | None, typer.Option(help="A ready-made signed app, `.ipa` or `.app`; else ours.")
    ] = None,
    bundle_id: Annotated[
        str | None, typer.Option(help="That the given app must have, with --ipa.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")] = False,
    include_unlisted: Annotated[
        bool, typer.Option("--include-unlisted", help="Also other models and older iOS.")
    ] = False,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait for phones that another run holds.")
    ] = False,
) -> None:
    """Measure what each phone does at its memory limit, and store it; apps die on purpose.

    Limit, memory, warning channels, reports of kills and their delay, load times, cost of a state:
    soaks and `fleet model budget` use them from then on. Example: fleet calibrate --devices all
    Exit codes: 0 every phone measured, 4 one was not, 2 usage, 3 no phone, 5 build, 6 held.
    """
    import anyio

    from orchestrator.cli.calibration_bench import run_calibration
    from orchestrator.cli.calibration_lines import as_json, calibration_lines
    from orchestrator.cli.compose import SoakOptions
    from orchestrator.cli.soak import given_app
    from orchestrator.domain.outcome import ExitCode

    options = SoakOptions(
        devices=devices,
        virtual=virtual,
        duration_s=None,
        scenario=None,
        output=output,
        config=config_in_use(config),
        settings=tuple(settings or ()),
        seed=1,
        include_unlisted=include_unlisted,
        wait=wait,
        ipa=given_app(ipa, bundle_id),
        bundle_id=bundle_id,
    )
    result = anyio.run(run_calibration, options, deaths)
    if json:
        print(as_json(result.calibrations))
    else:
        for calibration in result.calibrations:
            for line in calibration_lines(calibration):
                print(line)
    if result.interrupted_by is not None:
        sys.exit(ExitCode.SIGTERM if result.interrupted_by == "SIGTERM" else ExitCode.SIGINT)
    sys.exit(ExitCode.INCONCLUSIVE if result.unmeasured else ExitCode.OK)
