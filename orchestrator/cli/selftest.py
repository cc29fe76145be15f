"""`fleet selftest`: every defect on virtual phones, and what the checks say of it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.domain.errors import UsageError
from orchestrator.domain.outcome import ExitCode

app = typer.Typer(rich_markup_mode=None)

_CLEAN_ROUND = 8  # phones of the self-test's farm


@app.command()
def selftest(
    defect: Annotated[
        list[str] | None, typer.Option(help="Only this defect; may be repeated.")
    ] = None,
    repeat: Annotated[
        int, typer.Option(min=1, help="Clean rounds of eight phone sessions each.")
    ] = 3,
    seed: Annotated[
        int, typer.Option(min=0, max=2**63 - 1, help="Draws the defects' parameters and prompts.")
    ] = 1,
    sweep: Annotated[
        bool,
        typer.Option(
            "--sweep",
            help="Also find the smallest leak, decay and lateness caught in 95 % of runs.",
        ),
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    output: Annotated[
        Path | None,
        typer.Option(help="Keep all run folders there; else only those of a bad result are kept."),
    ] = None,
) -> None:
    """Run the harness with each deliberate defect on virtual phones: does its check fail?

    Examples: fleet selftest; fleet selftest --defect never-trim --repeat 1 --json. Exit codes:
    0 every defect was caught by its own check and no clean session raised one, 1 otherwise,
    2 usage, 5 no Swift toolchain: the stand-in app has no defects to speak of.
    """
    import anyio

    from orchestrator.cli.selftest_bench import SelfTestOptions, run_selftest
    from orchestrator.cli.selftest_table import result_lines
    from orchestrator.soak.cells import selected

    try:
        defects = selected(defect or ())
    except KeyError as error:
        raise UsageError(
            f"no defect {error.args[0]!r}", remedy="docs/protocol.md, section 5, lists them"
        ) from error
    options = SelfTestOptions(defects, repeat * _CLEAN_ROUND, seed, sweep, output)
    result, interrupted_by = anyio.run(run_selftest, options)
    if json:
        import msgspec

        print(msgspec.json.format(msgspec.json.encode(result), indent=2).decode())
    else:
        for line in result_lines(result):
            print(line)
    if interrupted_by is not None:
        sys.exit(ExitCode[interrupted_by])
    sys.exit(ExitCode.OK if result.is_good else ExitCode.PRODUCT_FAILED)
