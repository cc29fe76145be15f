"""`fleet model budget`."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.domain.errors import UsageError

if TYPE_CHECKING:
    from orchestrator.mlpackage.budget.ceiling import Ceiling
    from orchestrator.mlpackage.budget.demand import Demand

app = typer.Typer(add_completion=False, rich_markup_mode=None)

_Count = typer.Option(min=1, max=1_000_000)


@app.command()
def budget(
    packages: Annotated[
        list[Path] | None,
        typer.Argument(help="The packages of one model, or a folder that holds them."),
    ] = None,
    devices: Annotated[
        str | None, typer.Option(help='Marketing names: "iPhone 14,iPhone 16". All by default.')
    ] = None,
    entitled: Annotated[
        bool, typer.Option("--entitled", help="The app has increased-memory-limit.")
    ] = False,
    headroom: Annotated[str, typer.Option(help="Share of the limit to keep free.")] = "20%",
    layers: Annotated[int | None, _Count] = None,
    kv_heads: Annotated[int | None, _Count] = None,
    head_dim: Annotated[int | None, _Count] = None,
    length: Annotated[int | None, _Count] = None,
    weights_gb: Annotated[
        float | None, typer.Option(min=0, max=1000, help="GB of 1,000,000,000 bytes.")
    ] = None,
    runs: Annotated[Path, typer.Option(help="Where earlier runs are.")] = Path("runs"),
    json: Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")] = False,
) -> None:
    """Say which iPhone holds which context of a model: the KV-cache ceiling.

    From packages, or from plain numbers. Example: fleet model budget --layers 32 --kv-heads 32
    --head-dim 128 --length 2048 --weights-gb 1.7
    """
    from orchestrator.cli.budget_lines import blocks, heading, table
    from orchestrator.cli.measured_limits import measured_limits
    from orchestrator.mlpackage.budget.ceiling import ceilings
    from orchestrator.mlpackage.budget.phones import offers

    numbers = (layers, kv_heads, head_dim, length)
    demand = _demand(packages or [], numbers, weights_gb)
    names = [name.strip() for name in devices.split(",")] if devices else []
    phones = offers(names, measured_limits(runs), entitled=entitled)
    found = ceilings(demand, phones, _percent(headroom))
    if json:
        _print_json(demand, found)
        return
    for line in heading(demand, entitled=entitled, headroom=headroom):
        print(line)
    columns = shutil.get_terminal_size().columns
    for line in table(found, demand, columns) if sys.stdout.isatty() else blocks(found, demand):
        print(line)


def _demand(
    packages: list[Path], numbers: tuple[int | None, ...], weights_gb: float | None
) -> Demand:
    from orchestrator.mlpackage.budget.demand import Demand, demand_of, kv_cache_bytes
    from orchestrator.mlpackage.package import find_packages, read_package, require_state

    given = [number for number in numbers if number is not None]
    if packages and not given and weights_gb is None:
        read = [read_package(path) for folder in packages for path in find_packages(folder)]
        require_state(read)
        demand = demand_of(read)
        if not demand.kv_bytes_per_token:
            raise UsageError(
                f"{read[0].path}: the graph does not show which axis of its states is the context",
                remedy="Give --layers, --kv-heads, --head-dim and --length instead",
            )
        return demand
    if packages or len(given) != len(numbers):
        raise UsageError(
            "give packages, or all of --layers, --kv-heads, --head-dim and --length",
            remedy="--weights-gb goes with the numbers",
        )
    layers, kv_heads, head_dim, length = given
    return Demand(
        weights_bytes=round((weights_gb or 0) * 1e9),
        kv_bytes_per_token=kv_cache_bytes(layers, kv_heads, head_dim, 1),
        maximum_length=length,
        activations_bytes=0,
        layers=layers,
        kv_heads=kv_heads,
        head_dim=head_dim,
    )


def _percent(text: str) -> float:
    try:
        percent = float(text.removesuffix("%"))
    except ValueError:
        percent = -1.0
    if not 0 <= percent <= 90:
        raise UsageError(f"--headroom {text!r} is not a percentage from 0% to 90%")
    return percent


def _print_json(demand: Demand, found: list[Ceiling]) -> None:
    import dataclasses
    import json

    document = {
        "schema": 1,
        "demand": dataclasses.asdict(demand),
        "phones": [dataclasses.asdict(ceiling) for ceiling in found],
    }
    print(json.dumps(document, indent=2))
