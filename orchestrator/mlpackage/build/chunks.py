"""How a model is cut into packages: chunks of layers under one gigabyte each."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

import msgspec

from orchestrator.domain.errors import UsageError
from orchestrator.mlpackage.build.recipe import (
    BLOCK_COLUMNS,
    GROUP_ROWS,
    PART_KEY,
    Layout,
    States,
    Weights,
)

if TYPE_CHECKING:
    from orchestrator.mlpackage.build.recipe import Recipe

# A package over about 1.4 GB is reported to fall back to the GPU without a word; 1 GB keeps away.
CHUNK_LIMIT_BYTES: Final = 1_000_000_000
_GRAPH_BYTES: Final = 20_000_000  # allowed for graph, norms and tables

DECODE: Final = "decode"
PREFILL: Final = "prefill"


@dataclass(frozen=True, slots=True)
class Chunk:
    """A run of layers in one package."""

    number: int  # from 1
    of: int
    first_layer: int
    layer_count: int

    @property
    def has_embedding(self) -> bool:
        """Whether it takes ids; later chunks take `hidden_in`."""
        return self.number == 1

    @property
    def has_head(self) -> bool:
        """Whether it gives logits; earlier chunks give `hidden_out`."""
        return self.number == self.of

    @property
    def layers(self) -> range:
        """Its layers, numbered in the whole model."""
        return range(self.first_layer, self.first_layer + self.layer_count)


@dataclass(frozen=True, slots=True)
class Part:
    """One package of a kit: a chunk, its functions and who writes its state."""

    layout: Layout
    functions: tuple[str, ...]  # `decode`, `prefill`, or both in one package
    chunk: Chunk

    @property
    def name(self) -> str:
        """Name of its package without the suffix."""
        stem = "model" if len(self.functions) > 1 else self.functions[0]
        return stem if self.chunk.of == 1 else f"{stem}-{self.chunk.number}of{self.chunk.of}"

    def as_json(self) -> str:
        """Return the part as one JSON object with sorted keys."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Part:
        """Read a part from a package's metadata, which may be anything.

        Raises:
            UsageError: If it is not a part.
        """
        try:
            part = msgspec.json.decode(text, type=cls)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise UsageError(f"metadata {PART_KEY!r} is not a part: {error}") from error
        chunk = part.chunk
        known = set(part.functions) <= {DECODE, PREFILL} and bool(part.functions)
        counted = 1 <= chunk.number <= chunk.of
        if not (known and counted and chunk.first_layer >= 0 and chunk.layer_count >= 1):
            raise UsageError(f"metadata {PART_KEY!r} is not a part: {text[:200]}")
        return part


def parts_of(
    recipe: Recipe, layout: Layout, *, chunk_limit_bytes: int = CHUNK_LIMIT_BYTES
) -> list[Part]:
    """Return the packages of a model, chunk by chunk."""
    roles = [(DECODE, PREFILL)] if layout is Layout.MULTIFUNCTION else [(DECODE,), (PREFILL,)]
    chunks = cut(recipe, chunk_limit_bytes)
    return [Part(layout, functions, chunk) for chunk in chunks for functions in roles]


def cut(recipe: Recipe, limit_bytes: int = CHUNK_LIMIT_BYTES) -> list[Chunk]:
    """Cut the layers into the fewest chunks whose packages stay under a limit.

    Models with a pair of states stay whole: they are the ones that are meant to be one package.

    Raises:
        UsageError: If a single layer with the embedding is over the limit.
    """
    if recipe.states is States.PAIR:
        return [Chunk(1, 1, 0, recipe.layers)]
    for count in range(1, recipe.layers + 1):
        chunks = _even(recipe.layers, count)
        if max(chunk_bytes(recipe, chunk) for chunk in chunks) < limit_bytes:
            return chunks
    raise UsageError(f"recipe {recipe.name!r} has no chunks under {limit_bytes} bytes")


def chunk_bytes(recipe: Recipe, chunk: Chunk) -> int:
    """Estimate the bytes of a chunk's package, from above."""
    return _GRAPH_BYTES + stored_bytes(recipe, chunk)


def stored_bytes(recipe: Recipe, chunk: Chunk) -> int:
    """Return the bytes of a chunk's matrices and tables; its package is a little larger."""
    tables = (int(chunk.has_embedding) + int(chunk.has_head)) * recipe.vocab * recipe.width
    angles = 2 * recipe.length * recipe.head_dim
    return 2 * (tables + angles) + chunk.layer_count * layer_bytes(recipe)


def layer_bytes(recipe: Recipe) -> int:
    """Return the bytes of one layer's matrices as stored."""
    return sum(
        _matrix_bytes(rows, columns, recipe.weights)
        for rows, columns in recipe.layer_shapes().values()
    )


def _matrix_bytes(rows: int, columns: int, weights: Weights) -> int:
    count = rows * columns
    match weights:
        case Weights.LUT4:
            return count // 2 + rows // GROUP_ROWS * 16 * 2
        case Weights.INT4:
            return count // 2 + count // BLOCK_COLUMNS * 2
        case Weights.INT8:
            return count + rows * 2
        case Weights.FP16:
            return count * 2


def _even(layers: int, count: int) -> list[Chunk]:
    """Cut layers into `count` runs; the longer ones in the middle, away from the tables."""
    short, longer = divmod(layers, count)
    start = (count - longer) // 2
    sizes = [short + (start <= index < start + longer) for index in range(count)]
    firsts = [sum(sizes[:index]) for index in range(count)]
    return [
        Chunk(index + 1, count, first, size)
        for index, (first, size) in enumerate(zip(firsts, sizes, strict=True))
    ]
