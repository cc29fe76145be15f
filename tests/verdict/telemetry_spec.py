"""What the tiny honest app is asked to do, and what it says of itself when it begins."""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

Row = dict[str, object]

MIB = 1024**2
LAUNCH = "0f8fad5b-d9cb-469f-a165-70867728950e"
NONCE = "a17251028e4edc90"
DIGEST = "ab" * 32
PID = 4711
BOOT_S = 1_700_000_000.0
STATE_BYTES = 128 * MIB
LOADED_BYTES = 900 * MIB
LIMIT_BYTES = 2867 * MIB
STEP_NS = 5_000_000
VOCAB, FIRST_ID, END_ID, BOS_ID = 32000, 2, 0, 1


@dataclass(frozen=True, slots=True)
class Spec:
    """What the app is asked to do."""

    budget: int = 64
    chunk: int = 8
    pin: int = 1
    min_ids: int = 10
    max_ids: int = 20
    turn_limit: int = 24
    turns_per_conversation: int = 3
    end_every: int = 40
    stop_after: int = 400
    long_prompt: str = "refuse"
    warn_in_predictions: frozenset[int] = frozenset({3, 60, 61, 170, 171})  # ordinals of the launch
    warn_after_turns: frozenset[int] = frozenset({5})  # ordinals of the launch
    origin: str = "kernel"
    seed: int = 7
    audit_at_tokens: frozenset[int] = frozenset()
    background_at_tokens: frozenset[int] = frozenset()


LOAD_FIELDS: Row = {
    "digest": DIGEST,
    "bits_per_weight": 8.0,
    "compute_units": "none",
    "plan": [
        {"group": "feed_forward", "device": "neural_engine", "ops": 112},
        {"group": "embedding", "device": "cpu", "ops": 1},
    ],
    "cold": True,
    "ms": 12.0,
    "phase": "loaded",
    "weights_bytes": 700 * MIB,
}


def hello_fields(spec: Spec) -> Row:
    return {
        "app": "fleet-harness",
        "app_version": "0.1.0",
        "stand_in": True,
        "build": "test",
        "pid": PID,
        "device": "iPhone16,1",
        "os": "18.4",
        "os_build": "22E240",
        "wall_time_s": BOOT_S,
        "page_size": 4096,
        "physical_memory_bytes": 8_021_032_960,
        "available": LIMIT_BYTES - 100 * MIB,
        "entitled": False,
        "memory_scale": 32,
        "engine": "witness",
        "text": "pieces",
        "budget": spec.budget,
        "budget_inputs": {
            "class": "8gb",
            "policy_tokens": spec.budget,
            "model_capacity": 4096,
            "scenario_tokens": None,
            "kv_ceiling_tokens": None,
        },
        "quantization": "int8",
        "policies": {"pin": "bos", "long_prompt": spec.long_prompt, "headroom_percent": 20},
        "pin_ids": [BOS_ID][: spec.pin],
        "end_ids": [END_ID],
        "bos_id": BOS_ID,
        "vocab": VOCAB,
        "first_id": FIRST_ID,
        "end_every": spec.end_every,
        "chunk": spec.chunk,
        "chunk_widths": [spec.chunk],
        "nonce": NONCE,
        "run_id": "run",
        "scenario": "test",
        "seed": spec.seed,
    }


# A run that triggers every check.
FULL = Spec(
    warn_in_predictions=frozenset({3, 60, 61, 300}),
    stop_after=600,
    audit_at_tokens=frozenset({100, 250, 400, 500}),
    background_at_tokens=frozenset({200}),
)


def hash_of(ids: Sequence[int]) -> str:
    """Return the 16 digits over ids as little-endian int32."""
    return hashlib.sha256(struct.pack(f"<{len(ids)}i", *ids)).hexdigest()[:16]
