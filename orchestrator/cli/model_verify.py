"""`fleet model verify`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.domain.outcome import ExitCode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from orchestrator.mlpackage.verify.report import VerifyReport, WitnessReport

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def verify(
    package: Annotated[Path, typer.Argument(help="A package of `build`, or a kit's folder.")],
    vectors: Annotated[
        Path | None, typer.Option("--vectors", help="Contexts and tokens for a witness, JSON.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Execute a saved package with NumPy and compare it with an independent forward.

    Every weight, the logits, the rows of the states, and deliberate mistakes, which must be
    noticed. Exits 1 on a wrong weight or graph, 2 on a package that cannot be read or says nothing
    of what it must compute. Example: fleet model verify kit
    """
    from orchestrator.cli.main import one_line
    from orchestrator.mlpackage.verify.report import VerifyReport
    from orchestrator.mlpackage.verify.run import verify as run

    report = run(package, vectors)
    if json:
        _print_json(report)
    else:
        lines = _model_lines(report) if isinstance(report, VerifyReport) else _lines(report)
        for line in (*lines, *_last_lines(report)):
            print(one_line(line))
    if not report.passed:
        raise typer.Exit(ExitCode.PRODUCT_FAILED)


def _model_lines(report: VerifyReport) -> Iterator[str]:
    yield f"{report.model}: {', '.join(report.packages)} as {', '.join(report.roles)}"
    how = "compressed since, close to the seed's" if report.compressed else "equal the seed's"
    yield f"  weights: {report.weights_compared} compared, value by value; right is: {how}"
    yield (
        f"  outputs: {report.positions} positions, largest error {report.max_error:.4f}, "
        f"allowed {report.error_limit:.4f}, spread {report.output_spread:.3f}"
    )
    yield (
        f"  tokens: best equal {report.top1_equal:.1%}, among three {report.top1_in_top3:.1%}, "
        f"overlap of five {report.top5_overlap:.1%}"
    )
    yield f"  rows: {report.rows_written} written, {report.stray_rows} others changed"


def _lines(report: WitnessReport) -> Iterator[str]:
    yield f"witness: {', '.join(report.packages)} as {', '.join(report.roles)}"
    yield f"  contexts: {report.proven} of {report.contexts} proven"


def _last_lines(report: VerifyReport | WitnessReport) -> Iterator[str]:
    for mutation in report.mutations:
        noticed = f"noticed: {mutation.how}" if mutation.noticed else "NOT noticed"
        yield f"  mutation {mutation.name}: {noticed}"
    yield from (f"wrong: {finding}" for finding in report.findings)
    yield "verified" if report.passed else f"not verified: {len(report.findings)} findings"


def _print_json(report: VerifyReport | WitnessReport) -> None:
    import dataclasses
    import json
    import math

    document = {"passed": report.passed, **dataclasses.asdict(report)}
    # JSON has no infinity, which is the error of an output that is not a number.
    plain = {
        key: None if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in document.items()
    }
    print(json.dumps(plain, indent=2, allow_nan=False))
