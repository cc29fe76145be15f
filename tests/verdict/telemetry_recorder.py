"""The records of the tiny honest app, and the state that they tell of."""

from __future__ import annotations

import codecs

from orchestrator.domain.mixing import text_piece
from tests.verdict.telemetry_spec import (
    BOOT_S,
    END_ID,
    LAUNCH,
    LIMIT_BYTES,
    MIB,
    STATE_BYTES,
    Row,
    Spec,
)

DECODER = codecs.getincrementaldecoder("utf-8")


class Recorder:
    """One launch's state and the records written of it so far."""

    def __init__(self, spec: Spec | None = None) -> None:
        self.spec = spec or Spec()
        self.half = self.spec.budget // 2
        self.records: list[Row] = []
        self.t_ns = 1_000_000
        self.footprint = 100 * MIB
        self.state: int | None = None
        self.states = 0
        self.context: list[int] = []
        self.accepted: list[int] = []
        self.pending: list[int] = []
        self.conversation, self.turn, self.turn_start = 0, 0, 0
        self.in_hand: list[tuple[int, int, tuple[int, int]]] = []
        self.predictions = self.tokens_total = self.warnings = self.dry = 0
        self.span = (0, 0)
        self.waiting: list[int] = []
        self.counts = {"turns": 0, "trim": 0, "evict": 0}
        self.last_heartbeat_ns = self.last_sample_ns = 0
        self.phase = "idle"
        self.kernel_rows: list[int] = []  # what the KV memory really holds
        self.consumed: list[int] = []  # what the stream's consumer saw in this turn
        self.view = DECODER(errors="replace")  # holds back what is no whole character yet
        self.text_place = 0
        self.thermal = "nominal"

    def write(self, kind: str, **fields: object) -> Row:
        self.t_ns += 1000
        row: Row = {
            "launch": LAUNCH,
            "seq": len(self.records) + 1,
            "t_ns": self.t_ns,
            "kind": kind,
            **fields,
        }
        self.records.append(row)
        return row

    def place(self) -> dict[str, int]:
        return {"conversation": self.conversation, "turn": self.turn}

    def memory(self) -> dict[str, int]:
        return {"footprint": self.footprint, "host_bytes": self.footprint // 32}

    def flush(self) -> None:
        if not self.in_hand:
            return
        self.write(
            "tokens",
            **self.place(),
            ids=[token for token, _, _ in self.in_hand],
            n=[n for _, n, _ in self.in_hand],
            state=self.states,
            start_ns=[span[0] for _, _, span in self.in_hand],
            end_ns=[span[1] for _, _, span in self.in_hand],
            **self.text_fields([token for token, _, _ in self.in_hand]),
        )
        self.in_hand = []

    def text_fields(self, tokens: list[int]) -> Row:
        data = b"".join(self.bytes_of(token) for token in tokens)
        return {"text_bytes": len(data), "text": self.view.decode(data)}

    def bytes_of(self, token: int) -> bytes:
        place, self.text_place = self.text_place, self.text_place + 1
        return b"" if token == END_ID else text_piece(token, place)

    def tick(self) -> None:
        if self.t_ns - self.last_heartbeat_ns >= 5_000_000_000:
            self.last_heartbeat_ns = self.t_ns
            self.write("heartbeat", wall_time_s=BOOT_S + self.t_ns / 1e9, suspended_s=0.0)
        if self.t_ns - self.last_sample_ns >= 100_000_000:
            self.last_sample_ns = self.t_ns
            self.write("sample", **self.sample_fields())

    def sample_fields(self) -> Row:
        return {
            **self.memory(),
            "peak": self.footprint,
            "available": LIMIT_BYTES - self.footprint,
            "compressed": 0,
            "kv": 0 if self.state is None else STATE_BYTES,
            "ballast": 0,
            "weights": 700 * MIB,
            "n": len(self.context),
            "surfaces": 0,
            "thermal": self.thermal,
            "low_power": False,
            "foreground": True,
            "tokens_total": self.tokens_total,
        }
