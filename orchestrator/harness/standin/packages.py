"""Witness packages in the app's container (docs/protocol.md, 2.1)."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from orchestrator.harness.standin.fields import FieldError, Fields
from orchestrator.harness.standin.text import TEXTS

if TYPE_CHECKING:
    from pathlib import Path

QUANTIZATIONS: Final = ("int4", "int8")
DEVICES: Final = ("neural_engine", "gpu", "cpu")
_MOST_BYTES: Final = 1 << 40
_LONGEST_LOAD_MS: Final = 600_000


@dataclass(frozen=True, slots=True)
class PackageRef:
    """A package that the host says it has pushed."""

    quantization: str
    digest: str  # SHA-256, 64 hex digits
    path: str  # relative to the container


@dataclass(frozen=True, slots=True)
class WitnessModel:
    """What a witness package says about itself. Bytes are phone bytes."""

    digest: str
    quantization: str
    bits_per_weight: int
    weights_bytes: int
    kv_row_bytes: int
    capacity: int  # rows of the KV state
    vocab: int
    first_id: int
    end_id: int
    bos_id: int | None  # begins a conversation, None for models without one
    chunk: int  # widest prefill chunk
    text: str = "decimal"  # which text an id has
    load_ms: int = 0  # how long a load takes
    compute_plan: tuple[dict[str, object], ...] = ()  # what a plan of the model would say


def read_refs(fields: Fields) -> tuple[PackageRef, ...]:
    """Return the packages that a `start` command lists.

    Raises:
        FieldError: If an entry is malformed.
    """
    refs = []
    for entry in fields.children("packages"):
        entry.text("kind", ("witness",))
        refs.append(
            PackageRef(
                entry.text("quantization", QUANTIZATIONS), entry.text("digest"), entry.text("path")
            )
        )
    return tuple(refs)


def load_model(container: Path, ref: PackageRef) -> WitnessModel:
    """Return the model of a package after its digest was checked.

    Raises:
        FieldError: If the package lies outside the container, is missing, has another digest or is
            not the witness package it is listed as.
    """
    folder = (container / ref.path).resolve()
    if not folder.is_relative_to(container.resolve()):
        raise FieldError(f"package path {ref.path!r} leaves the container")
    try:
        content = (folder / "model.json").read_bytes()
        described = Fields(json.loads(content), "model")
    except (OSError, ValueError) as error:
        raise FieldError(f"package {ref.path!r} cannot be read: {error}") from error
    if hashlib.sha256(content).hexdigest() != ref.digest:
        raise FieldError(f"package {ref.path!r} does not have the digest it is listed with")
    return _model(described, ref)


def _model(fields: Fields, ref: PackageRef) -> WitnessModel:
    fields.text("kind", ("witness",))
    vocab = fields.integer("vocab", 2, 1 << 24)
    capacity = fields.integer("capacity", 1, 1 << 24)
    return WitnessModel(
        digest=ref.digest,
        quantization=fields.text("quantization", (ref.quantization,)),
        bits_per_weight=fields.integer("bits_per_weight", 1, 32),
        weights_bytes=fields.integer("weights_bytes", 0, _MOST_BYTES),
        kv_row_bytes=fields.integer("kv_row_bytes", 1, 1 << 24),
        capacity=capacity,
        vocab=vocab,
        first_id=fields.integer("first_id", 0, vocab - 1),
        end_id=fields.integer("end_id", 0, vocab - 1),
        bos_id=fields.optional_integer("bos_id", 0, vocab - 1),
        chunk=fields.integer("chunk", 1, capacity),
        text=fields.text("text", TEXTS) if fields.has("text") else "decimal",
        load_ms=fields.optional_integer("load_ms", 0, _LONGEST_LOAD_MS) or 0,
        compute_plan=tuple(_placement(entry) for entry in fields.children("compute_plan")),
    )


def _placement(fields: Fields) -> dict[str, object]:
    return {
        "group": fields.text("group"),
        "device": fields.text("device", DEVICES),
        "ops": fields.integer("ops", 0, 1 << 31),
    }
