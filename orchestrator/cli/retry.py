"""`fleet retry RUN --only failed|error`."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from orchestrator.cli.compose import SoakOptions

app = typer.Typer(rich_markup_mode=None)


class Only(StrEnum):
    """Which phones of a run are soaked again."""

    FAILED = "failed"
    ERROR = "error"


@app.command()
def retry(
    run: Annotated[
        str | None, typer.Argument(help="A run directory or id; default the latest.")
    ] = None,
    only: Annotated[
        Only, typer.Option(help="failed: the product failed; error: the lab did.")
    ] = Only.ERROR,
    output: Annotated[Path, typer.Option(help="Where run folders are.")] = Path("runs"),
    json: Annotated[bool, typer.Option("--json", help="Print summary.json on stdout.")] = False,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait for phones that another run holds.")
    ] = False,
    ipa: Annotated[
        Path | None, typer.Option(help="The app, where the run was given one with --ipa.")
    ] = None,
) -> None:
    """Soak some phones of a run again, as it soaked them, in a new run.

    The old run is evidence and stays as it is. Exit codes are those of `fleet soak`; 0 if no phone
    of the run ended that way. Example: fleet retry runs/latest --only error
    """
    import anyio

    from orchestrator.cli.compose import run_soak
    from orchestrator.cli.conclusion import conclude
    from orchestrator.cli.printing import note
    from orchestrator.cli.run_argument import run_folder
    from orchestrator.config.load import load_config

    options = _options(run_folder(run, output), only, output, wait=wait, ipa=ipa)
    if options is None:
        note(f"no phone of the run ended as {only}")
        return
    again, summary = anyio.run(run_soak, options)
    sys.exit(conclude(again, summary, load_config(options.config, ()), json=json))


def _options(
    folder: Path, only: Only, output: Path, *, wait: bool, ipa: Path | None
) -> SoakOptions | None:
    from orchestrator.cli.app_package import SUPPLIED
    from orchestrator.cli.compose import SoakOptions
    from orchestrator.domain.errors import UsageError
    from orchestrator.domain.outcome import Outcome
    from orchestrator.runlog.documents import PlanDocument, RunDocument, SummaryDocument
    from orchestrator.runlog.files import read_document
    from orchestrator.runlog.layout import RunPaths

    paths = RunPaths(folder)
    run = read_document(paths.run, RunDocument)
    plan = read_document(paths.plan, PlanDocument)
    summary = read_document(paths.summary_json, SummaryDocument)
    wanted = Outcome.FAIL if only is Only.FAILED else Outcome.ERROR
    udids = [phone.udid for phone in summary.phones if phone.outcome == wanted]
    if not udids:
        return None
    if (plan.app.kind == SUPPLIED) != (ipa is not None):
        given = "was given its app with --ipa" if ipa is None else "was not given an app"
        raise UsageError(f"run {run.run_id} {given}", remedy="Retry it with the same app")
    duration_s = plan.scenario.get("duration_s")
    return SoakOptions(
        devices=",".join(udids),
        virtual=run.virtual,
        duration_s=float(duration_s) if isinstance(duration_s, int | float) else None,
        scenario=str(plan.scenario["name"]),
        output=output,
        config=paths.config,
        settings=(),
        seed=plan.seed,
        include_unlisted=True,
        wait=wait,
        ipa=ipa,
        bundle_id=plan.app.bundle_id if ipa else None,
    )
