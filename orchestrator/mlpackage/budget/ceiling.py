"""Decides what fits: the safe context, the token budget, the quantization, the largest model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from orchestrator.domain.iphone import MIB
from orchestrator.domain.memory_class import MemoryClass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.mlpackage.budget.demand import Demand
    from orchestrator.mlpackage.budget.phones import Offer

# The app itself: 285 MB were measured with a 1.7 B parameter model on the Neural Engine whose cache
# holds 235 MB (iPhone16,2, iOS 26.6, getdictus/dictus-ios pull request 371).
APP_BYTES: Final = 50 * MIB

_STEP_TOKENS: Final = 64  # budgets are whole prefill chunks
# The contract's budgets per class: what a phone keeps up with, memory aside.
_POLICY_TOKENS: Final = {MemoryClass.GB6: 1024, MemoryClass.GB8: 2048, MemoryClass.GB12: 2048}
_POLICY_BITS: Final = {MemoryClass.GB6: 4, MemoryClass.GB8: 8, MemoryClass.GB12: 8}
# Only these compute int8 with int8 on the Neural Engine; elsewhere 8 bits save memory alone.
# Source: apple.github.io/coremltools/docs-guides/source/opt-quantization-perf.html
_INT8_COMPUTE: Final = ("A17 Pro", "A18", "A18 Pro", "A19", "A19 Pro")


@dataclass(frozen=True, slots=True)
class Room:
    """What is left for the cache, with the weights in one of the two places."""

    kv_room_bytes: int  # negative: not even the weights fit
    safe_context: int  # tokens whose cache fits; 0 where nothing does

    @classmethod
    def of(cls, kv_room_bytes: int, demand: Demand) -> Room:
        """Return the room for a cache; the model's own maximum caps the context."""
        per_token = demand.kv_bytes_per_token
        tokens = max(0, kv_room_bytes) // per_token if per_token else 0
        if demand.maximum_length is not None:
            tokens = min(tokens, demand.maximum_length)
        return cls(kv_room_bytes, tokens)


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The budget of one model on one phone model."""

    offer: Offer
    usable_bytes: int  # the limit less the headroom
    on_neural_engine: Room  # weights outside the footprint
    in_footprint: Room  # weights inside it: GPU, CPU, or a silent fall back
    recommended_tokens: int  # 0: nothing fits, wherever the weights are
    needs_neural_engine: bool  # the recommendation holds only with the weights outside
    recommended_bits: int
    recommended_form: str
    largest_parameters_4bit: int  # with the weights in the footprint and the recommended cache
    largest_parameters_8bit: int


def ceilings(demand: Demand, phones: Sequence[Offer], headroom_percent: float) -> list[Ceiling]:
    """Return the budget of a model on each phone."""
    return [_ceiling(demand, offer, headroom_percent) for offer in phones]


def _ceiling(demand: Demand, offer: Offer, headroom_percent: float) -> Ceiling:
    usable_bytes = int(offer.limit_bytes * (100 - headroom_percent) / 100)
    outside_bytes = usable_bytes - APP_BYTES - demand.activations_bytes
    engine = Room.of(outside_bytes, demand)
    footprint = Room.of(outside_bytes - demand.weights_bytes, demand)
    needs_engine = footprint.safe_context < _STEP_TOKENS
    tokens = _recommended(offer, engine if needs_engine else footprint)
    weights_room_bytes = max(0, outside_bytes - demand.kv_bytes(tokens))
    return Ceiling(
        offer=offer,
        usable_bytes=usable_bytes,
        on_neural_engine=engine,
        in_footprint=footprint,
        recommended_tokens=tokens,
        needs_neural_engine=needs_engine and tokens > 0,
        recommended_bits=_POLICY_BITS[offer.memory_class],
        recommended_form=_form(offer),
        largest_parameters_4bit=weights_room_bytes * 8 // 4,
        largest_parameters_8bit=weights_room_bytes,
    )


def _recommended(offer: Offer, room: Room) -> int:
    tokens = min(room.safe_context, _POLICY_TOKENS[offer.memory_class])
    return tokens // _STEP_TOKENS * _STEP_TOKENS


def _form(offer: Offer) -> str:
    if _POLICY_BITS[offer.memory_class] == 4:
        return "4-bit palettes, activations fp16"
    if offer.chip in _INT8_COMPUTE:
        return "int8 weights; int8 activations gain speed on this chip"
    return "int8 weights, activations fp16"
