"""Witness packages: the models that prove which ids their KV rows hold (docs/protocol.md, 2.1)."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FIRST_ID: Final = 2
END_ID: Final = 0
BOS_ID: Final = 1
SELFTEST_LOAD_MS: Final = 1200  # long beside what a busy host adds to it

BITS_PER_WEIGHT: Final = {"int4": 4, "int8": 8}
# 700 MiB and about twice that: one model at both widths.
_WEIGHTS_BYTES: Final = {"int4": 734_003_200, "int8": 1_395_864_371}


@dataclass(frozen=True, slots=True)
class PlannedGroup:
    """What a compute plan of a witness model says of one group of operations."""

    group: str
    device: str
    ops: int


@dataclass(frozen=True, slots=True)
class WitnessShape:
    """Size of a witness model, in phone bytes, and what it pretends of a real one."""

    weights_bytes: int
    kv_row_bytes: int = 32_768
    capacity: int = 4096  # rows of the KV state
    chunk: int = 64  # widest prefill chunk
    vocab: int = 32_000
    text: Literal["decimal", "pieces"] = "decimal"  # docs/protocol.md, 3.1
    load_ms: int = 0  # how long a load takes
    compute_plan: tuple[PlannedGroup, ...] = ()


@dataclass(frozen=True, slots=True)
class ModelPackage:
    """One package, ready to be pushed."""

    quantization: str
    digest: str  # 64 hex digits; docs/protocol.md, 2.1, says over what
    files: Mapping[str, bytes | Path]  # by name
    bits_per_weight: int
    capacity: int  # rows of the KV state
    kind: str = "witness"
    load_ms: float | None = None  # the set load time, None where there is none
    has_bos: bool = True  # whether it has an id that begins a conversation

    @property
    def size_bytes(self) -> int:
        """Bytes that are pushed."""
        return sum(
            len(source) if isinstance(source, bytes) else source.stat().st_size
            for source in self.files.values()
        )

    @property
    def folder(self) -> str:
        """Where it lies in the app's container."""
        return f"Documents/models/{self.digest}"

    def listed(self) -> dict[str, str]:
        """Return the entry for `start`'s list of packages."""
        return {
            "quantization": self.quantization,
            "digest": self.digest,
            "path": self.folder,
            "kind": self.kind,
        }


def witness_package(quantization: str, shape: WitnessShape | None = None) -> ModelPackage:
    """Return a witness package; equal arguments give equal bytes.

    Args:
        quantization: `int4` or `int8`.
        shape: Its size; that of the soak's model where it is None.

    Raises:
        ValueError: If the quantization is neither.
    """
    if quantization not in BITS_PER_WEIGHT:
        raise ValueError(f"no quantization {quantization!r}, only {', '.join(BITS_PER_WEIGHT)}")
    size = shape or WitnessShape(_WEIGHTS_BYTES[quantization])
    described: dict[str, object] = {
        "kind": "witness",
        "quantization": quantization,
        "bits_per_weight": BITS_PER_WEIGHT[quantization],
        "weights_bytes": size.weights_bytes,
        "kv_row_bytes": size.kv_row_bytes,
        "capacity": size.capacity,
        "vocab": size.vocab,
        "first_id": FIRST_ID,
        "end_id": END_ID,
        "bos_id": BOS_ID,
        "chunk": size.chunk,
    } | _pretences(size)
    content = json.dumps(described, separators=(",", ":")).encode()
    return ModelPackage(
        quantization,
        hashlib.sha256(content).hexdigest(),
        {"model.json": content},
        bits_per_weight=BITS_PER_WEIGHT[quantization],
        capacity=size.capacity,
        load_ms=float(size.load_ms) or None,
    )


def _pretences(shape: WitnessShape) -> dict[str, object]:
    """Return the members that stand in a package only where they are not the default."""
    members: dict[str, object] = {}
    if shape.text != "decimal":
        members["text"] = shape.text
    if shape.load_ms:
        members["load_ms"] = shape.load_ms
    if shape.compute_plan:
        members["compute_plan"] = [asdict(group) for group in shape.compute_plan]
    return members


def witness_packages(capacity: int = 4096) -> tuple[ModelPackage, ...]:
    """Return the packages of a soak, one of each quantization, with `capacity` KV rows."""
    return tuple(
        witness_package(quantization, WitnessShape(_WEIGHTS_BYTES[quantization], capacity=capacity))
        for quantization in BITS_PER_WEIGHT
    )


# As iOS places a model that fits the Neural Engine (docs/protocol.md, 2.1, has the groups).
_FITTING_PLAN: Final = (
    PlannedGroup("embedding", "cpu", 2),
    PlannedGroup("norm", "neural_engine", 64),
    PlannedGroup("attention", "neural_engine", 224),
    PlannedGroup("feed_forward", "neural_engine", 112),
    PlannedGroup("head", "neural_engine", 2),
)


def selftest_packages(capacity: int = 4096) -> tuple[ModelPackage, ...]:
    """Return packages with everything that a check can judge: text, load time, compute plan."""
    return tuple(
        witness_package(
            quantization,
            WitnessShape(
                _WEIGHTS_BYTES[quantization],
                capacity=capacity,
                text="pieces",
                load_ms=SELFTEST_LOAD_MS,
                compute_plan=_FITTING_PLAN,
            ),
        )
        for quantization in BITS_PER_WEIGHT
    )
