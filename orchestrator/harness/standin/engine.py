"""The witness engine: its tokens prove what its KV rows hold (contract, proof of context)."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from orchestrator.domain.mixing import mix, probe_rows
from orchestrator.harness.standin.clock import Pace
from orchestrator.harness.standin.memory import Region, touched_region
from orchestrator.harness.standin.ports import PredictionError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.harness.standin.clock import LaunchClock
    from orchestrator.harness.standin.packages import WitnessModel
    from orchestrator.harness.standin.scenario import Scenario

_U64: Final = (1 << 64) - 1
_FILL: Final = b"\xa5"
_ID: Final = struct.Struct("<i")


class KVRows:
    """The rows of one state, each with its id in the first four bytes."""

    def __init__(self, capacity: int, row_bytes: int) -> None:
        """Map the rows of the whole capacity and touch them, so that the footprint steps once.

        Args:
            capacity: Rows.
            row_bytes: Host bytes of a row, at least 4.
        """
        self._row_bytes = row_bytes
        self._filler = _FILL * (row_bytes - _ID.size)
        self._region = touched_region(capacity * row_bytes)

    def write(self, row: int, token: int) -> None:
        """Write a row."""
        start = row * self._row_bytes
        self._region.bytes[start : start + self._row_bytes] = _ID.pack(token) + self._filler

    def read(self, row: int) -> int:
        """Return the id that a row holds in memory."""
        token: int = _ID.unpack_from(self._region.bytes, row * self._row_bytes)[0]
        return token

    def release(self) -> None:
        """Unmap the rows."""
        self._region.release()


class WitnessEngine:
    """Weights and at most one state. One owner, one thread."""

    def __init__(
        self, model: WitnessModel, scenario: Scenario, nonce: int, scale: int, clock: LaunchClock
    ) -> None:
        """Describe the engine; `load` maps its weights.

        Args:
            model: The package.
            scenario: Speeds and the rate of end tokens.
            nonce: From the host, 64 bit.
            scale: Phone bytes per host byte.
            clock: Times of predictions.
        """
        self._model, self._nonce, self._scale = model, nonce, scale
        self._end_every = scenario.end_every
        self._prefill_tokens_per_s = scenario.prefill_tokens_per_s
        self._decode_tokens_per_s = scenario.decode_tokens_per_s
        self._clock, self._pace = clock, Pace(clock)
        self._weights: Region | None = None
        self._rows: KVRows | None = None
        self.row_count = 0

    @property
    def weights_bytes(self) -> int:
        """Phone bytes of the loaded weights."""
        return self._model.weights_bytes if self._weights else 0

    @property
    def state_bytes(self) -> int:
        """Phone bytes of one state."""
        return self._model.capacity * self._model.kv_row_bytes

    def load(self) -> None:
        """Map the weights."""
        self._weights = touched_region(self._model.weights_bytes // self._scale)

    def make_state(self, purpose: str) -> None:
        """Make a state with no rows.

        Raises:
            PredictionError: If its memory is refused.
        """
        try:
            self._rows = self._new_rows()
        except OSError as error:
            raise PredictionError("state", f"no memory for a state: {error}") from error
        self.row_count = 0

    def _new_rows(self) -> KVRows:
        return KVRows(self._model.capacity, max(_ID.size, self._model.kv_row_bytes // self._scale))

    def release_state(self, purpose: str) -> None:
        """Unmap the state's rows."""
        if self._rows is not None:
            self._rows.release()
        self._rows = None
        self.row_count = 0

    def predict(self, ids: Sequence[int], purpose: str) -> tuple[int, int]:
        """Feed ids and return start and end of the prediction in nanoseconds since the launch.

        Args:
            ids: A prefill chunk, or the one token of a decode step.
            purpose: `decode`, or a prefill's.

        Raises:
            PredictionError: If the rows do not fit the model.
        """
        started_ns = self._clock.now_ns()
        if self._rows is None or self.row_count + len(ids) > self._model.capacity:
            raise PredictionError("capacity", f"the model takes {self._model.capacity} rows")
        self._write(self._rows, ids, purpose)
        self.row_count += len(ids)
        decodes = purpose == "decode"
        rate = self._decode_tokens_per_s if decodes else self._prefill_tokens_per_s
        self._pace.wait(started_ns, len(ids) / rate)
        return started_ns, self._clock.now_ns()

    def _write(self, rows: KVRows, ids: Sequence[int], purpose: str) -> None:
        for row, token in enumerate(ids, self.row_count):
            rows.write(row, token)

    def sample(self) -> int:
        """Return the token that the rows in memory prove.

        Raises:
            PredictionError: If there are no rows.
        """
        if self._rows is None or self.row_count == 0:
            raise PredictionError("logits", "there is nothing to sample from")
        return witness_token(self._rows, self.row_count, self._nonce, self._model, self._end_every)


def witness_token(
    rows: KVRows, row_count: int, nonce: int, model: WitnessModel, end_every: int
) -> int:
    """Return the token of `row_count` rows, read back from their memory."""
    digest = nonce
    for row in probe_rows(row_count, nonce):
        digest = mix((digest ^ rows.read(row) ^ (row << 32)) & _U64)
    if end_every and digest % end_every == 0:
        return model.end_id
    return model.first_id + digest % (model.vocab - model.first_id)


class StaleTrimEngine(WitnessEngine):
    """The defect `trim-stale-state`: a trim only claims to remake the state, its rows stay."""

    def make_state(self, purpose: str) -> None:
        """Keep the old rows where the state is remade for a trim."""
        if purpose == "trim" and self._rows is not None:
            self.row_count = 0
            return
        super().make_state(purpose)

    def release_state(self, purpose: str) -> None:
        """Keep the rows where the state is released for a trim."""
        if purpose != "trim":
            super().release_state(purpose)

    def _write(self, rows: KVRows, ids: Sequence[int], purpose: str) -> None:
        if purpose != "trim":
            super()._write(rows, ids, purpose)
