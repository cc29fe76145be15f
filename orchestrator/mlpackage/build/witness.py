"""The proof-of-context model: a graph whose states hold token ids as small exact integers.

A row of `k_cache` holds the base-16 digits of the id, a row of `v_cache` holds 15 minus each, so
that both states are proven. Rows are read back by a one-hot matrix product: one term of each sum
is not zero, so fp16 is exact on any compute unit. The token is computed from the rows outside.

| input | shape | |
|---|---|---|
| `input_ids` | `[1, q]` int32 | |
| `position_ids` | `[q]` int32 | the rows that are written |
| `probe_onehot` | `[8, length]` fp16 | one 1 a row, at the probed position |

Output: `probed_rows` `[8, 64]` fp16, the probed row of `k_cache` and beside it that of `v_cache`.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from orchestrator.domain.errors import UsageError
from orchestrator.mlpackage.build.caches import one
from orchestrator.mlpackage.build.chunks import DECODE, PREFILL, Chunk, Part
from orchestrator.mlpackage.build.kit import (
    LENGTH_KEY,
    BuiltPackage,
    Kit,
    built_package,
    write_kit,
)
from orchestrator.mlpackage.build.progress import Progress
from orchestrator.mlpackage.build.recipe import PART_KEY, Layout
from orchestrator.mlpackage.build.saving import write_package

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.mlpackage.build.coreml import Mil, MilObject
    from orchestrator.mlpackage.build.draws import Half

WITNESS_KEY: Final = "fleet.witness"
PROBES: Final = 8
DIGITS: Final = 4  # of base 16: ids under 65,536
BASE: Final = 16
_ROW_WIDTH: Final = 32  # the Neural Engine wants multiples of 32
_STATES: Final = ("k_cache", "v_cache")


@dataclass(frozen=True, slots=True)
class WitnessRecipe:
    """Sizes of a witness model.

    Raises:
        UsageError: If an id has more digits than a row holds, or a chunk is over the rows.
    """

    vocab: int = 32_768
    length: int = 2048
    chunk: int = 64

    def __post_init__(self) -> None:
        if not 2 < self.vocab <= BASE**DIGITS or not 1 <= self.chunk <= self.length:
            raise UsageError(
                f"a witness of vocab {self.vocab}, {self.length} rows and chunks of {self.chunk}"
            )

    @classmethod
    def from_json(cls, text: str) -> WitnessRecipe:
        """Read a recipe from a package's metadata, which may be anything.

        Raises:
            UsageError: If it is not a witness recipe.
        """
        try:
            return msgspec.json.decode(text, type=cls)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise UsageError(f"metadata {WITNESS_KEY!r} is not a witness: {error}") from error


def digit_table(vocab: int) -> Half:
    """Return the digits of every id, lowest first, [vocab, 32]."""
    ids = np.arange(vocab)[:, None]
    table = np.zeros((vocab, _ROW_WIDTH), np.float16)
    table[:, :DIGITS] = ids // BASE ** np.arange(DIGITS) % BASE
    return table


def build_witness(
    mil: Mil,
    recipe: WitnessRecipe,
    layout: Layout,
    folder: Path,
    progress: Progress | None = None,
) -> Kit:
    """Build the witness packages; equal arguments give equal bytes.

    Raises:
        UsageError: If the layout is `host-state`: rows that the host writes prove nothing.
    """
    if layout is Layout.HOST_STATE:
        raise UsageError("a witness writes its own states: not with the layout host-state")
    folder.mkdir(parents=True, exist_ok=True)
    roles = [(DECODE, PREFILL)] if layout is Layout.MULTIFUNCTION else [(DECODE,), (PREFILL,)]
    progress = progress or Progress()
    progress.total = len(roles)
    packages = []
    for functions in roles:
        part = Part(layout, functions, Chunk(1, 1, 0, 1))
        packages.append(_package(mil, recipe, part, folder))
        progress.step(f"{part.name}: written")
    kit = Kit(folder, "witness", "fp16", layout.value, tuple(packages), ())
    write_kit(kit, asdict(recipe))
    return kit


def _package(mil: Mil, recipe: WitnessRecipe, part: Part, folder: Path) -> BuiltPackage:
    functions = {role: _function(mil, recipe, part, role) for role in part.functions}
    metadata = {
        WITNESS_KEY: json.dumps(asdict(recipe), sort_keys=True),
        PART_KEY: part.as_json(),
        LENGTH_KEY: str(recipe.length),
    }
    path = folder / f"{part.name}.mlpackage"
    write_package(mil, functions, path, metadata)
    return built_package(path, part)


def _function(mil: Mil, recipe: WitnessRecipe, part: Part, role: str) -> MilObject:
    mb, types = mil.mb, mil.types
    q = recipe.chunk if role == PREFILL else 1
    state = (1, 1, recipe.length, _ROW_WIDTH)
    inputs = {
        "input_ids": mb.TensorSpec((1, q), dtype=types.int32),
        "position_ids": mb.TensorSpec((q,), dtype=types.int32),
        "probe_onehot": mb.TensorSpec((PROBES, recipe.length), dtype=types.fp16),
    } | {name: mb.StateTensorSpec(state, dtype=types.fp16) for name in _STATES}
    with mil.Function(inputs, opset_version=mil.ct.target.iOS18) as function:
        variables = dict(function.inputs)
        table = mb.const(val=digit_table(recipe.vocab), name="digit_table")
        if len(part.functions) > 1:
            table.op.weight_id = "w:digit_table"
        function.set_outputs([_probed_rows(mb, table, variables)])
    return function


def _probed_rows(mb: Mil, table: MilObject, inputs: dict[str, MilObject]) -> MilObject:
    digits = mb.gather(x=table, indices=inputs["input_ids"], axis=0, validate_indices=False)
    digits = mb.expand_dims(x=digits, axes=[0])
    positions = inputs["position_ids"]
    first = mb.slice_by_size(x=positions, begin=[0], size=[1])
    last = mb.slice_by_index(x=positions, begin=[-1], end=[0], end_mask=[True])
    begin = mb.concat(values=[one(0), one(0), first, one(0)], axis=0)
    stop = mb.add(x=last, y=np.array([1], np.int32))
    end = mb.concat(values=[one(1), one(1), stop, one(_ROW_WIDTH)], axis=0)
    probed = []
    inverted = mb.sub(x=np.float16(BASE - 1), y=digits)
    for name, rows in zip(_STATES, (digits, inverted), strict=True):
        old = mb.read_state(input=inputs[name])
        changed = mb.slice_update(x=old, update=rows, begin=begin, end=end)
        now = mb.coreml_update_state(state=inputs[name], value=changed)
        flat = mb.squeeze(x=now, axes=[0, 1])
        probed.append(mb.matmul(x=inputs["probe_onehot"], y=flat))
    return mb.concat(values=probed, axis=1, name="probed_rows")
