"""What the pipeline is given and what it tells: values, and the protocols of its neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.harness.standin.context import Admission, Trim
    from orchestrator.harness.standin.pressure import Interruption


class PredictionError(Exception):
    """A prediction failed; the state is undefined and has to be released (R9).

    Attributes:
        code: Short name for the `fault` record.
    """

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        super().__init__(message)


class Phase(StrEnum):
    """What an interruption finds."""

    IDLE = "idle"
    PREFILL = "prefill"
    DECODE = "decode"


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn as it is asked for."""

    conversation: int
    number: int  # within its conversation, from 1
    prompt: list[int]
    limit: int | None  # most generated tokens


@dataclass(frozen=True, slots=True)
class TurnRules:
    """What holds for every turn of a launch."""

    end_ids: frozenset[int]
    chunk: int  # widest prefill chunk


@dataclass(frozen=True, slots=True)
class Chunk:
    """One prefill chunk after its prediction."""

    purpose: str
    start: int  # rows before it
    ids: list[int]
    state: int
    span_ns: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Sample:
    """One sampled token."""

    token: int
    rows: int
    state: int
    span_ns: tuple[int, int]  # the prediction whose logits were sampled


class Engine(Protocol):
    """Computes on one state at a time."""

    def make_state(self, purpose: str) -> None:
        """Make a state with no rows."""

    def release_state(self, purpose: str) -> None:
        """Release the state's memory."""

    def predict(self, ids: Sequence[int], purpose: str) -> tuple[int, int]:
        """Feed ids; return start and end in nanoseconds since the launch."""

    def sample(self) -> int:
        """Return the token of the last prediction."""


class TurnLog(Protocol):
    """Writes what happens, before the act where the act can kill."""

    def turn_started(self, turn: Turn, admission: Admission) -> None:
        """A turn begins."""

    def prefilled(self, chunk: Chunk) -> None:
        """A chunk was fed."""

    def sampled(self, sample: Sample) -> None:
        """A token was sampled."""

    def trimming(self, trim: Trim, count: int, reason: str, phase: Phase, state: int) -> int:
        """A trim is about to happen; return the `seq` of its record."""

    def about_to_evict(self, rows: int) -> None:
        """An eviction is about to be recorded, once the warnings it answers are known."""

    def evicting(self, interruption: Interruption, rows: int, phase: Phase, state: int) -> int:
        """An eviction is about to happen; return the `seq` of its record."""

    def state(self, action: str, number: int, purpose: str) -> None:
        """A state was made or released."""

    def notice(self, for_seq: int) -> None:
        """The view shows that the context was cut."""

    def fault(self, code: str, message: str, phase: Phase) -> None:
        """A prediction failed."""


class Attendant(Protocol):
    """Acts between two steps of a turn."""

    def after_sample(self, token: int) -> None:
        """A sample was recorded; the next step has not begun."""

    def after_eviction(self) -> None:
        """An eviction has released the state."""

    def memory_is_low(self) -> bool:
        """Return whether a trim for low memory is due (R13)."""
