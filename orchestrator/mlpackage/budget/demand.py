"""What a model asks of a phone's memory, from its packages or from plain numbers."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from orchestrator.mlpackage.activations import activation_bytes
from orchestrator.mlpackage.cache import Architecture, architecture
from orchestrator.mlpackage.inspect import weights_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.mlpackage.graph import Function
    from orchestrator.mlpackage.package import Package

FP16_BYTES: Final = 2


@dataclass(frozen=True, slots=True)
class Demand:
    """Bytes that a model needs beside the app."""

    weights_bytes: int
    kv_bytes_per_token: int
    maximum_length: int | None  # tokens that the model's states hold; None: not limited
    activations_bytes: int
    layers: int | None = None
    kv_heads: int | None = None
    head_dim: int | None = None

    def kv_bytes(self, length: int) -> int:
        """Return the bytes of a cache of `length` tokens."""
        return self.kv_bytes_per_token * length


def kv_cache_bytes(
    layers: int, kv_heads: int, head_dim: int, length: int, element_bytes: int = FP16_BYTES
) -> int:
    """Return 2 x layers x kv heads x head dim x length x bytes: keys and values of all layers.

    32 x 32 x 128 at 2048 tokens in fp16 is 1,073,741,824 bytes.
    """
    return 2 * layers * kv_heads * head_dim * length * element_bytes


def demand_of(packages: Sequence[Package]) -> Demand:
    """Return what the packages of one model need when all of them are loaded.

    Weights add up. Caches add up over the chunks of one width; packages of another width (prefill
    beside decode) work on the same caches, so the widest sum counts once.
    """
    by_width: dict[int, list[Architecture]] = defaultdict(list)
    for package in packages:
        widths = {_width(f): architecture(f) for f in package.model.functions.values() if f.states}
        for width, found in widths.items():
            by_width[width].append(found)
    chunks = max(by_width.values(), key=_bytes_per_token, default=[])
    first = chunks[0] if chunks else None
    functions = [f for package in packages for f in package.model.functions.values()]
    return Demand(
        weights_bytes=sum(weights_bytes(package) for package in packages),
        kv_bytes_per_token=_bytes_per_token(chunks),
        maximum_length=max((c.maximum_length for c in chunks if c.maximum_length), default=None),
        activations_bytes=max((activation_bytes(f) for f in functions), default=0),
        layers=sum(c.layers or 0 for c in chunks) or None,
        kv_heads=first.kv_heads if first else None,
        head_dim=first.head_dim if first else None,
    )


def _bytes_per_token(chunks: list[Architecture]) -> int:
    return sum(chunk.kv_bytes_per_token for chunk in chunks)


def _width(function: Function) -> int:
    """Return the tokens of one prediction, from the first integer or hidden-state input."""
    for feature in function.inputs:
        shape = feature.type.shape
        if feature.type.dtype == "int32" and shape:
            return shape[-1] or 1
    return 1
