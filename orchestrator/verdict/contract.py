"""Replay of vector files: the operations that a correct pipeline performs, from ids alone.

`fleet contract FILE` prints these answers; the harness app prints its own for the same file. What a
file says under `expect` or `token` is never read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, TypeVar

import msgspec

from orchestrator.domain.errors import UsageError
from orchestrator.verdict.window import ContextWindow
from orchestrator.verdict.witness import Witness

if TYPE_CHECKING:
    from collections.abc import Sequence

Operation = dict[str, object]
S = TypeVar("S", bound=msgspec.Struct)

_Positive = Annotated[int, msgspec.Meta(ge=1)]
_Natural = Annotated[int, msgspec.Meta(ge=0)]
_MAX_DRY_EVICTIONS: Final = 1  # R8: the second with nothing sampled in between ends the turn


class TurnVector(msgspec.Struct, frozen=True, kw_only=True):
    """One turn of a vector; `warnings` are ordinals of predictions, from 1 within the turn."""

    prompt: list[int]
    sampled: list[int]
    limit: int | None
    warnings: list[int]


class ContractVector(msgspec.Struct, frozen=True, kw_only=True):
    """One conversation of a contract file."""

    budget: _Positive
    pin: _Natural
    chunk: _Positive
    end_ids: list[int]
    turns: list[TurnVector]


class WitnessVector(msgspec.Struct, frozen=True, kw_only=True):
    """One case of a witness file."""

    context: Annotated[list[int], msgspec.Meta(min_length=1)]
    nonce: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{16}$")]
    vocab: _Positive
    first_id: _Natural
    end_id: int
    end_every: _Natural


def answer_contract(document: object) -> list[list[list[Operation]]]:
    """Return the operations of a contract file: a list per vector, a list per turn.

    Raises:
        UsageError: If the shape is wrong; it names the place.
    """
    return [
        _replay(vector, number) for number, vector in enumerate(_read(document, ContractVector))
    ]


def answer_witness(document: object) -> list[int]:
    """Return the tokens of a witness file.

    Raises:
        UsageError: If the shape is wrong; it names the place.
    """
    return [_token(vector, number) for number, vector in enumerate(_read(document, WitnessVector))]


def _read(document: object, kind: type[S]) -> list[S]:
    try:
        return msgspec.convert(document, list[kind])  # type: ignore[valid-type]
    except (msgspec.ValidationError, OverflowError, RecursionError) as error:
        raise UsageError(f"vector file: {error}") from error


def _replay(vector: ContractVector, number: int) -> list[list[Operation]]:
    try:
        player = _Player(vector)
    except ValueError as error:
        raise UsageError(f"vector file: {error} - at `$[{number}].pin`") from error
    return [player.turn(turn) for turn in vector.turns]


def _token(vector: WitnessVector, number: int) -> int:
    try:
        witness = Witness(
            nonce=int(vector.nonce, 16),
            vocab=vector.vocab,
            first_id=vector.first_id,
            end_id=vector.end_id,
            end_every=vector.end_every,
        )
    except ValueError as error:
        raise UsageError(f"vector file: {error} - at `$[{number}].vocab`") from error
    return witness.token(vector.context)


class _Player:
    """Plays scripted turns on a window and writes down every operation."""

    def __init__(self, vector: ContractVector) -> None:
        self._window = ContextWindow(vector.budget, vector.pin)
        self._chunk, self._end_ids = vector.chunk, frozenset(vector.end_ids)
        self._state, self._alive = 0, False
        self._operations: list[Operation] = []
        self._warned_at: frozenset[int] = frozenset()
        self._predictions = 0  # within the turn
        self._warned = False  # a warning landed and was not answered yet
        self._dry_evictions = 0  # since the last sample

    def turn(self, script: TurnVector) -> list[Operation]:
        """Return the operations of one turn."""
        self._operations, self._warned_at = [], frozenset(script.warnings)
        self._predictions, self._dry_evictions, self._warned = 0, 0, False
        opening = self._window.opening(script.prompt)
        if opening.refused:
            self._note("refused", tokens=opening.offered)
            return self._operations
        self._window.open(opening.used_ids)
        reason = self._generate(script) if self._ingest(opening.used_ids) else "memory_pressure"
        self._note("end", reason=reason)
        return self._operations

    def _ingest(self, used_ids: list[int]) -> bool:
        """Bring the turn in; False where a second eviction ends it."""
        if self._window.overflows(len(used_ids)):
            self._trim(len(used_ids))
        while not self._feed(self._window.ingest_ids(), "prompt"):
            if not self._answer_warning():
                return False
        return True

    def _generate(self, script: TurnVector) -> str:
        for count, token in enumerate(script.sampled, 1):
            self._note("sample", id=token, n=self._window.row_count)
            self._dry_evictions = 0
            self._answer_warning()
            if token in self._end_ids or count == script.limit:
                self._window.pending = [token]
                return "end_token" if token in self._end_ids else "turn_limit"
            if not self._prepare_decode():
                return "memory_pressure"
            self._predict([token], "decode")
            self._window.accept(token)
        self._answer_warning()
        return "script"

    def _prepare_decode(self) -> bool:
        """Trim or resume before a decode step; False where a second eviction ends the turn."""
        if self._window.overflows(1):
            self._trim(1)
        while not self._window.rows:
            self._feed(self._window.resume_ids(), "resume")
            if not self._warned:
                break
            if not self._answer_warning():
                return False
        return True

    def _trim(self, k: int) -> None:
        plan = self._window.trim_plan(k)
        self._note("trim", before=plan.before, kept=plan.kept_ids)
        self._drop()
        self._feed(plan.kept_ids, "trim")
        self._answer_warning()

    def _answer_warning(self) -> bool:
        """Evict if a warning landed; False where it is the second with nothing sampled between."""
        if self._warned:
            self._note("evict", before=self._window.row_count)
            self._drop()
            self._warned = False
            self._dry_evictions += 1
        return self._dry_evictions <= _MAX_DRY_EVICTIONS

    def _feed(self, ids: Sequence[int], purpose: str) -> bool:
        """Feed ids in chunks; False where a warning landed before the last of them."""
        for start in range(0, len(ids), self._chunk):
            self._predict(ids[start : start + self._chunk], purpose)
            if self._warned:
                return start + self._chunk >= len(ids)
        return True

    def _predict(self, ids: Sequence[int], purpose: str) -> None:
        if not self._alive:
            self._alive = True
            self._state += 1
            self._note("make", state=self._state)
        self._window.feed(ids)
        self._predictions += 1
        self._note("predict", purpose=purpose, ids=list(ids), n=self._window.row_count)
        self._warned = self._predictions in self._warned_at

    def _drop(self) -> None:
        self._note("drop", state=self._state)
        self._window.release()
        self._alive = False

    def _note(self, op: str, **facts: object) -> None:
        self._operations.append({"op": op, **facts})
