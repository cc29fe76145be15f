"""`fleet init`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from orchestrator.domain.errors import UsageError

app = typer.Typer(rich_markup_mode=None)


@app.command()
def init(
    output: Annotated[Path, typer.Option(help="The file to write.")] = Path("fleet.yaml"),
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
) -> None:
    """Write a commented configuration that expects the phones that are attached now.

    Never replaces a file without --force. Example: fleet init --output lab.yaml
    """
    import anyio

    from orchestrator.cli.attached import listed_phones
    from orchestrator.cli.first_config import first_config
    from orchestrator.cli.printing import note

    if output.exists() and not force:
        raise UsageError(f"{output} is there already", remedy="Take --output or --force")
    phones, remarks = anyio.run(listed_phones, None)
    for remark in remarks:
        note(remark)
    text = first_config(phones)
    _write(output, text, force=force)
    print(f"{output}: expects {text.count('- {udid: ')} of {len(phones)} attached phones")
    print("next: set harness.bundle_id and FLEET_TEAM_ID, then `fleet doctor`")


def _write(output: Path, text: str, *, force: bool) -> None:
    """Write a whole file or none, and only one that is a valid configuration."""
    from orchestrator.config.load import load_config

    partial = output.with_name(f".{output.name}.partial")
    try:
        partial.write_text(text, encoding="utf-8")
        load_config(partial)
        if force:
            partial.replace(output)
        else:
            output.hardlink_to(partial)  # refuses where a file came in between
    except FileExistsError as error:
        raise UsageError(f"{output} is there already", remedy="Take --output or --force") from error
    except OSError as error:
        raise UsageError(f"{output}: cannot be written: {error.strerror}") from error
    finally:
        partial.unlink(missing_ok=True)
