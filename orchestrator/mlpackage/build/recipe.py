"""What a model is made of, before any weight exists: sizes, seed, precision and layout.

A recipe travels in the metadata of every package made from it, so that `fleet model verify` can
make the same weights again without reading them from the package.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Final

import msgspec

from orchestrator.domain.errors import UsageError

GROUP_ROWS: Final = 16  # output channels that share one palette
BLOCK_COLUMNS: Final = 32  # inputs that share one scale in int4
RECIPE_KEY: Final = "fleet.recipe"
PART_KEY: Final = "fleet.part"
COMPRESSED_KEY: Final = "fleet.compressed"  # the precision, in packages of `compress`


class Weights(StrEnum):
    """How the weights of the layers are stored; embedding, head and tables stay fp16."""

    LUT4 = "lut4"
    INT8 = "int8"
    INT4 = "int4"
    FP16 = "fp16"


class Layout(StrEnum):
    """How decode (1 token) and prefill (a chunk) are packaged, and who writes the state."""

    # Multifunction with two states and q > 1 is reported refused by iPhone Neural Engines
    # (`ANECCompile FAILED 11`), the same prefill as its own package is not: so this is the default.
    SEPARATE = "separate"
    MULTIFUNCTION = "multifunction"
    HOST_STATE = "host-state"  # the graph reads its states, the host writes the new rows


class States(StrEnum):
    """How the cache of a package is cut into states."""

    PAIR = "pair"  # `k_cache` and `v_cache`, each [layers, kv_heads, length, head_dim]
    JOINT = "joint"  # one `kv_cache` [2 * layers, ...], layer l at 2l and 2l + 1


class Attention(StrEnum):
    """The form of attention in the graph."""

    MATMUL = "matmul"  # matmul, add, softmax, matmul: reported safer on the Neural Engine
    SDPA = "sdpa"


@dataclass(frozen=True, slots=True)
class Recipe:
    """One decoder-only model: RMSNorm, grouped-query attention, RoPE, SwiGLU.

    Raises:
        UsageError: If the sizes cannot be combined or stored.
    """

    name: str
    layers: int
    width: int
    heads: int
    kv_heads: int
    head_dim: int
    inner: int  # width of the feed-forward
    vocab: int
    length: int  # rows of the cache: the hard maximum
    weights: Weights = Weights.LUT4
    states: States = States.PAIR
    attention: Attention = Attention.MATMUL
    chunk: int = 64  # tokens of one prefill prediction
    seed: int = 7
    epsilon: float = 1e-5
    theta: float = 10_000.0

    def __post_init__(self) -> None:
        if min(self.layers, self.width, self.kv_heads, self.vocab, self.length, self.chunk) < 1:
            raise UsageError(f"recipe {self.name!r}: every size is at least 1")
        if self.heads % self.kv_heads:
            raise UsageError(f"recipe {self.name!r}: {self.heads} heads over {self.kv_heads}")
        if self.chunk > self.length:
            raise UsageError(f"recipe {self.name!r}: chunk {self.chunk} over {self.length} rows")
        for rows, columns in set(self.layer_shapes().values()):
            if rows % GROUP_ROWS or columns % BLOCK_COLUMNS:
                raise UsageError(
                    f"recipe {self.name!r}: a weight of {rows} x {columns} does not divide"
                    f" by groups of {GROUP_ROWS} x {BLOCK_COLUMNS}"
                )
        if self.head_dim % 32:
            raise UsageError(
                f"recipe {self.name!r}: head_dim {self.head_dim} is not a multiple of 32",
                remedy="The Neural Engine refuses such states (coremltools issue 2631)",
            )

    def layer_shapes(self) -> dict[str, tuple[int, int]]:
        """Return the matrices of one layer, [outputs, inputs] each."""
        queries, keys = self.heads * self.head_dim, self.kv_heads * self.head_dim
        return {
            "q": (queries, self.width),
            "k": (keys, self.width),
            "v": (keys, self.width),
            "o": (self.width, queries),
            "gate": (self.inner, self.width),
            "up": (self.inner, self.width),
            "down": (self.width, self.inner),
        }

    @property
    def layer_parameters(self) -> int:
        """Parameters of one layer's matrices."""
        return sum(rows * columns for rows, columns in self.layer_shapes().values())

    @property
    def parameters(self) -> int:
        """Parameters of the whole model, norms left out."""
        return self.layers * self.layer_parameters + 2 * self.vocab * self.width

    @property
    def kv_bytes(self) -> int:
        """Bytes of the whole cache: 2 x layers x kv_heads x head_dim x length x 2."""
        return 4 * self.layers * self.kv_heads * self.head_dim * self.length

    def as_json(self) -> str:
        """Return the recipe as one JSON object with sorted keys."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Recipe:
        """Read a recipe from a package's metadata, which may be anything.

        Raises:
            UsageError: If it is not a recipe.
        """
        try:
            recipe = msgspec.json.decode(text, type=cls)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise UsageError(f"metadata {RECIPE_KEY!r} is not a recipe: {error}") from error
        return recipe


TINY: Final = Recipe(
    name="tiny", layers=4, width=256, heads=4, kv_heads=2, head_dim=64, inner=704, vocab=4096,
    length=2048,
)  # fmt: skip
ONE_B: Final = Recipe(
    name="1b", layers=16, width=2048, heads=32, kv_heads=8, head_dim=64, inner=8192, vocab=32_768,
    length=2048,
)  # fmt: skip
# One state a chunk: three or more states in a package convert and then fail on the phone.
THREE_B: Final = Recipe(
    name="3b", layers=28, width=3072, heads=24, kv_heads=8, head_dim=128, inner=8192, vocab=32_768,
    length=2048, states=States.JOINT,
)  # fmt: skip
PRESETS: Final = {recipe.name: recipe for recipe in (TINY, ONE_B, THREE_B)}


def preset(name: str, weights: Weights, attention: Attention = Attention.MATMUL) -> Recipe:
    """Return a decoder preset with the weights and the attention asked for.

    Raises:
        UsageError: If there is no such preset.
    """
    if name not in PRESETS:
        raise UsageError(f"no preset {name!r}, only {', '.join(PRESETS)} and witness")
    return replace(PRESETS[name], weights=weights, attention=attention)
