"""`fleet model build`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.mlpackage.build.recipe import Attention, Layout, Weights

if TYPE_CHECKING:
    from collections.abc import Iterator

    from orchestrator.mlpackage.build.kit import Kit
    from orchestrator.mlpackage.build.progress import Progress

app = typer.Typer(add_completion=False, rich_markup_mode=None)

_WITNESS = "witness"


@app.command()
def build(
    preset: Annotated[str, typer.Option("--preset", help="tiny, 1b, 3b or witness.")],
    out: Annotated[Path, typer.Option("--out", help="Folder of the kit; made if missing.")],
    weights: Annotated[
        Weights | None, typer.Option("--weights", help="Of the layers; lut4 where not given.")
    ] = None,
    layout: Annotated[
        Layout, typer.Option("--layout", help="How decode and prefill are packaged.")
    ] = Layout.SEPARATE,
    attention: Annotated[
        Attention, typer.Option("--attention", help="Form of attention in the graph.")
    ] = Attention.MATMUL,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of the weights.")] = 7,
    json: Annotated[bool, typer.Option("--json", help="Print the kit as JSON on stdout.")] = False,
) -> None:
    """Build a stateful model: packages, `weights.safetensors`, `goldens.json` and `kit.json`.

    Needs the extra [models]. Example: fleet model build --preset tiny --weights int8 --out kit
    """
    from orchestrator.mlpackage.build import coreml, kit, witness
    from orchestrator.mlpackage.build.progress import Progress, peak_memory_bytes
    from orchestrator.mlpackage.build.recipe import preset as recipe_of

    if preset == _WITNESS and weights not in (None, Weights.FP16):
        raise typer.BadParameter("a witness has no weights to compress", param_hint="--weights")
    recipe = None
    if preset != _WITNESS:
        recipe = replace(recipe_of(preset, weights or Weights.LUT4, attention), seed=seed)
    mil = coreml.load()
    progress = Progress()
    with _Bar(progress):
        if recipe is None:
            built = witness.build_witness(mil, witness.WitnessRecipe(), layout, out, progress)
        else:
            built = kit.build_kit(mil, recipe, layout, out, progress)
    lines = list(_lines(built, progress.elapsed_s, peak_memory_bytes()))
    if json:
        print((out / kit.KIT_FILE).read_text(encoding="utf-8"), end="")
        return
    for line in lines:
        print(line)


class _Bar:
    """A progress bar on a terminal's stderr; elsewhere silent, for a log holds no bars."""

    def __init__(self, progress: Progress) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar

        console = Console(stderr=True)
        columns = (BarColumn(), TextColumn("{task.completed}/{task.total}"), TimeElapsedColumn())
        self._bar = Bar(
            TextColumn("{task.description:28}"),
            *columns,
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("", total=None)
        progress.report = self._show

    def _show(self, label: str, done: int, total: int) -> None:
        self._bar.update(self._task, description=label, completed=done, total=total)

    def __enter__(self) -> None:
        self._bar.start()

    def __exit__(self, *_: object) -> None:
        self._bar.stop()


def _lines(built: Kit, elapsed_s: float, peak_bytes: int) -> Iterator[str]:
    yield f"{built.name}, weights {built.weights}, layout {built.layout}, in {built.folder}"
    for package in built.packages:
        yield f"  {package.path.name}: {package.size_bytes:,} bytes, digest {package.digest}"
    for name in built.files:
        yield f"  {name}: {(built.folder / name).stat().st_size:,} bytes"
    yield f"built in {elapsed_s:.1f} s, peak memory {peak_bytes:,} bytes"
