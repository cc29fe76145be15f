"""`fleet build`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(rich_markup_mode=None)


@app.command()
def build(
    virtual: Annotated[
        bool, typer.Option("--virtual", help="Build the app that virtual phones run.")
    ] = False,
    duration: Annotated[
        str, typer.Option(help="How long a soak is to be: the profile must last so long.")
    ] = "12h",
    config: Annotated[Path | None, typer.Option(help="The configuration.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="Override a key: --set harness.team_id=X.")
    ] = None,
    output: Annotated[Path | None, typer.Option(help="Copy the .ipa there.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")] = False,
) -> None:
    """Build and sign the app for iPhones, and check what was signed; needs a Mac with Xcode.

    Equal sources, settings and Xcode are built once. Exit codes: 0, 2 usage, 5 with one cause and
    the log. `--virtual` builds the app that virtual phones run. Example: fleet build --json
    """
    import shutil
    import tempfile

    import msgspec

    from orchestrator.cli.built import build_document, failed_document
    from orchestrator.cli.iphone_build import UnfitAppError
    from orchestrator.cli.soak_options import config_in_use
    from orchestrator.config.fields import parse_duration
    from orchestrator.config.load import load_config
    from orchestrator.domain.errors import UsageError
    from orchestrator.harness.xcode.build import XcodeError

    try:
        soak_s = parse_duration(duration)
    except ValueError as error:
        raise UsageError(f"--duration: {error}") from error
    file = config_in_use(config)
    loaded = load_config(file, settings or ())
    if virtual and output is None:
        raise UsageError("--virtual needs --output", remedy="Say where the .ipa goes")
    with tempfile.TemporaryDirectory(prefix="fleet-build-") as folder:
        try:
            made = build_document(loaded, soak_s, Path(folder), virtual=virtual)
        except (XcodeError, UnfitAppError) as error:
            if json:
                failed = failed_document(error)
                print(msgspec.json.format(msgspec.json.encode(failed), indent=2).decode())
            raise
        if output is not None:
            output.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(made.ipa, output)
            made = msgspec.structs.replace(made, ipa=str(output))
    if json:
        print(msgspec.json.format(msgspec.json.encode(made), indent=2).decode())
        return
    for line in made.lines():
        print(line)
