"""Writes run directories of long soaks, record by record: no run is ever in memory here either."""

from __future__ import annotations

import hashlib
import json
import os
from typing import TYPE_CHECKING, Final

from msgspec import structs

from orchestrator.runlog.files import write_document
from orchestrator.runlog.layout import RunPaths
from orchestrator.runlog.manifest import write_manifest
from tests.report.runs import run_document
from tests.verdict.host_side import device_of, evidence_of, plan_of, planned_phone
from tests.verdict.telemetry_factory import App
from tests.verdict.telemetry_spec import LAUNCH, Row, Spec

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TOKENS_PER_S: Final = 30.0
PHONES: Final = 4
_CHAIN_EVERY: Final = 32


class StreamingApp(App):
    """The tiny honest app, whose records leave at once."""

    def __init__(self, spec: Spec, take: Callable[[bytes], object]) -> None:
        super().__init__(spec)
        self._take, self._seq, self._digest = take, 0, hashlib.sha256()

    def write(self, kind: str, **fields: object) -> Row:
        self.t_ns += 1000
        self._seq += 1
        row: Row = {"launch": LAUNCH, "seq": self._seq, "t_ns": self.t_ns, "kind": kind, **fields}
        chained = self._seq % _CHAIN_EVERY == 0 or kind == "bye"
        line = row | {"chain": self._digest.hexdigest()[:16]} if chained else row
        encoded = json.dumps(line, separators=(",", ":")).encode() + b"\n"
        if chained:
            self._digest = hashlib.sha256()
        else:
            self._digest.update(encoded)
        self._take(encoded)
        return row

    def play(self) -> None:
        self.begin()
        while self.tokens_total < self.spec.stop_after:
            self.play_turn()
        self.end()


def spec_of(tokens: int) -> Spec:
    """Return a soak of so many tokens: budget and turns of the size of a real one's."""
    return Spec(
        budget=1024,
        chunk=64,
        min_ids=40,
        max_ids=120,
        turn_limit=200,
        turns_per_conversation=20,
        end_every=400,
        stop_after=tokens,
        warn_in_predictions=frozenset(range(500, tokens, 20_000)),
        warn_after_turns=frozenset(),
    )


def write_long_run(root: Path, hours: float) -> int:
    """Write a run of `PHONES` phones with all records of so many hours; return their bytes.

    The records are those of so many tokens at `TOKENS_PER_S`, eight to a record, with 1.5 samples a
    second; their clock runs 200 tokens a second, which no check here cares about.
    """
    spec = spec_of(int(hours * 3600 * TOKENS_PER_S))
    phones = [
        structs.replace(
            planned_phone(spec),
            udid=f"00008130-000A1B2C3D4E00{number:02d}",
            alias=f"desk-{number}",
            directory=f"desk-{number}-3D4E00{number:02d}",
        )
        for number in range(PHONES)
    ]
    paths = RunPaths(root)
    write_document(paths.run, run_document())
    write_document(paths.plan, plan_of(spec, phones=phones))
    paths.events.write_bytes(b"")
    first: Path | None = None
    for phone in phones:
        device = paths.device(phone.directory)
        attempt = device.attempt(1)
        write_document(device.device, device_of(udid=phone.udid, alias=phone.alias))
        write_document(attempt.evidence, evidence_of())
        for path in (attempt.stream(1), attempt.journal(1)):
            path.parent.mkdir(parents=True, exist_ok=True)
            if first is None:
                first = path
                with path.open("wb") as file:
                    StreamingApp(spec, file.write).play()
            else:
                os.link(first, path)
    write_manifest(root)
    assert first is not None
    return first.stat().st_size
