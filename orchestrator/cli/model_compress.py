"""`fleet model compress`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.mlpackage.build.recipe import Weights  # noqa: TC001 - typer reads it

if TYPE_CHECKING:
    from collections.abc import Iterator

    from orchestrator.mlpackage.compress.run import Compressed

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def compress(
    package: Annotated[Path, typer.Argument(metavar="IN", help="An fp16 package; not changed.")],
    weights: Annotated[Weights, typer.Option("--weights", help="lut4, int8 or int4.")],
    out: Annotated[Path, typer.Option("--out", help="The new .mlpackage.")],
    keep: Annotated[
        str, typer.Option("--keep", help="What stays: fp16: and some of first,last,tables.")
    ] = "fp16:first,last,tables",
    json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Compress your own package, with sizes before and after and the numeric difference.

    Needs the extra [models]. Example: fleet model compress in.mlpackage --weights int8 --out
    out.mlpackage
    """
    from orchestrator.cli.main import one_line
    from orchestrator.mlpackage.build import coreml
    from orchestrator.mlpackage.compress.plan import parse_keep
    from orchestrator.mlpackage.compress.run import compress as run

    done = run(coreml.load(), package, weights, parse_keep(keep), out)
    if json:
        _print_json(done)
        return
    for line in _lines(done):
        print(one_line(line))


def _lines(done: Compressed) -> Iterator[str]:
    saved = 1 - done.bytes_after / done.bytes_before
    yield f"{done.package}: digest {done.digest}"
    yield f"  {done.bytes_before:,} bytes before, {done.bytes_after:,} after: {saved:.1%} less"
    yield f"  compressed {done.compressed} weights, kept {len(done.kept)}"
    yield from (f"    kept {name}: {reason}" for name, reason in done.kept.items())
    yield (
        f"  weight error {done.error:.4f} of their size, "
        f"worst {done.worst_error:.4f} in {done.worst_weight}"
    )
    if done.outputs is None:
        yield "  outputs not compared: the package does not say what it must compute"
        return
    outputs = done.outputs
    yield (
        f"  output error {outputs.max_error_before:.4f} before, {outputs.max_error_after:.4f} "
        f"after, spread {outputs.spread:.3f}; best token equal at {outputs.top1_equal_after:.1%} "
        f"of {outputs.positions} positions"
    )


def _print_json(done: Compressed) -> None:
    import dataclasses
    import json

    print(json.dumps(dataclasses.asdict(done), indent=2, default=str))
