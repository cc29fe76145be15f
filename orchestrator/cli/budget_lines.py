"""The words and columns of `fleet model budget`. Numbers are never cut."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orchestrator.mlpackage.budget.ceiling import APP_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from orchestrator.mlpackage.budget.ceiling import Ceiling, Room
    from orchestrator.mlpackage.budget.demand import Demand

_KV_LENGTHS: Final = (1024, 2048)
_GAP: Final = "  "


def heading(demand: Demand, *, entitled: bool, headroom: str) -> Iterator[str]:
    """Yield what the table is computed from."""
    length = demand.maximum_length
    if demand.layers and demand.kv_heads and demand.head_dim and length:
        yield (
            f"KV cache: 2 x {demand.layers} layers x {demand.kv_heads} kv heads x "
            f"{demand.head_dim} head dim x {length} tokens x 2 bytes = "
            f"{demand.kv_bytes(length):,} bytes"
        )
    yield (
        f"KV cache per token: {demand.kv_bytes_per_token:,} bytes; a state is allocated whole, so "
        "a package takes its maximum at any context"
    )
    yield f"weights: {demand.weights_bytes:,} bytes"
    yield f"activations: {demand.activations_bytes:,} bytes"
    yield (
        f"app: {APP_BYTES:,} bytes; {headroom.removesuffix('%')} % of the limit stays free; "
        f"{'with' if entitled else 'without'} increased-memory-limit"
    )


def blocks(found: Sequence[Ceiling], demand: Demand) -> Iterator[str]:
    """Yield a block per phone, one `label: value` a line, for files and pipes."""
    for ceiling in found:
        yield ""
        for label, text in _cells(ceiling, demand).items():
            yield f"{label}: {text}"


def table(found: Sequence[Ceiling], demand: Demand, width: int) -> Iterator[str]:
    """Yield aligned columns for a terminal of `width` characters: phones go across.

    As many phones stand side by side as the width takes, at least one: no number is cut.
    """
    columns = [_cells(ceiling, demand) for ceiling in found]
    label = max((len(name) for column in columns for name in column), default=0)
    while columns:
        room, count = width - label, 0
        for column in columns:
            room -= _width(column) + len(_GAP)
            if count and room < 0:
                break
            count += 1
        yield from _side_by_side(columns[:count], label)
        columns = columns[count:]


def _side_by_side(columns: list[dict[str, str]], label: int) -> Iterator[str]:
    for name in columns[0]:
        cells = (column[name].rjust(_width(column)) for column in columns)
        yield _GAP.join([name.ljust(label), *cells])
    yield ""


def _width(column: dict[str, str]) -> int:
    return max(len(text) for text in column.values())


def _cells(ceiling: Ceiling, demand: Demand) -> dict[str, str]:
    offer = ceiling.offer
    return {
        "model": offer.model,
        "chip": offer.chip,
        "RAM class": f"{offer.ram_gb} GB",
        "limit": f"{offer.limit_bytes:,} bytes",
        "limit is": offer.limit_origin,
        "usable": f"{ceiling.usable_bytes:,} bytes",
        **_kv_cells(demand),
        "safe context, weights on the Neural Engine": _context(ceiling.on_neural_engine),
        "safe context, weights in the footprint": _context(ceiling.in_footprint),
        "recommended budget": _recommended(ceiling),
        "recommended weights": f"{ceiling.recommended_bits} bits",
        "form": ceiling.recommended_form,
        "largest model at 4 bits": f"{ceiling.largest_parameters_4bit:,} parameters",
        "largest model at 8 bits": f"{ceiling.largest_parameters_8bit:,} parameters",
    }


def _kv_cells(demand: Demand) -> dict[str, str]:
    cells = {f"KV at {n}": f"{demand.kv_bytes(n):,} bytes" for n in _KV_LENGTHS}
    if demand.maximum_length:
        at_most = demand.kv_bytes(demand.maximum_length)
        cells[f"KV at the maximum of {demand.maximum_length}"] = f"{at_most:,} bytes"
    return cells


def _context(room: Room) -> str:
    return f"{room.safe_context:,} tokens" if room.safe_context else "does not fit"


def _recommended(ceiling: Ceiling) -> str:
    if not ceiling.recommended_tokens:
        return "none: does not fit"
    condition = " if on the Neural Engine" if ceiling.needs_neural_engine else ""
    return f"{ceiling.recommended_tokens:,} tokens{condition}"
