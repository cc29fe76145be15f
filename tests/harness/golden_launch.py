"""Makes `protocol/golden.ndjson` of the Swift app anew: one launch that holds every record kind.

python -m tests.harness.golden_launch ios_harness/.build/debug/harness-host
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from orchestrator.harness.models import PlannedGroup, WitnessShape
from tests.harness.standin_process import REPO_ROOT, Record, StandIn

GOLDEN = REPO_ROOT / "ios_harness" / "protocol" / "golden.ndjson"
SHAPE = WitnessShape(
    64 * 1024**2,
    capacity=256,
    chunk=16,
    vocab=1000,
    text="pieces",
    load_ms=20,
    compute_plan=(
        PlannedGroup("embedding", "cpu", 1),
        PlannedGroup("norm", "neural_engine", 33),
        PlannedGroup("attention", "neural_engine", 64),
        PlannedGroup("feed_forward", "neural_engine", 48),
        PlannedGroup("head", "neural_engine", 1),
    ),
)
# Slow, so that a heartbeat comes; token by token something else happens.
CHANGES: Record = {
    "name": "golden",
    "speed": {"decode_tokens_per_s": 20.0, "prefill_tokens_per_s": 2000.0},
    "prompts": {"min_ids": 12, "max_ids": 24, "turn_limit": 20, "turns_per_conversation": 4},
    "end_every": 100,
    "sample_period_ms": 1000,
    "ballast": [
        {"from_token": 20, "to_token": 26, "to_percent": 30, "release": "evict", "hold_tokens": 20}
    ],
    "warnings": [{"at_token": 32}, {"at_token": 64, "phase": "idle"}],
    "audits": [{"at_token": 50}],
    "reloads": [{"at_token": 72}],
    "background": [{"at_token": 90, "for_ms": 200}],
    "engine_faults": [{"kind": "non_finite", "at_token": 104}],
    "pause_ms": 20,
    "stop_after_tokens": 120,
}
ENVIRONMENT = {
    "FLEET_LC_UUID": "7692c3ad-3540-bb80-3c02-0b3aee66cd88",
    "FLEET_BOOT_TIME_S": "1750000000.0",
}


class Harness(StandIn):
    """The Swift app in the stand-in's place."""

    program = tuple(sys.argv[1:2])


def play(container: Path) -> bytes:
    """Play the launch and return its journal."""
    app = Harness(container, ENVIRONMENT, SHAPE)
    client = app.connect()
    client.hello()
    app.start(client, **CHANGES)
    app.condition(n=1, event="battery", level_percent=87, charging=True)
    app.condition(n=2, event="thermal", state="fair")
    app.await_journal(b'"heartbeat"')
    for number, value in ((3, False), (4, True)):
        app.condition(n=number, event="foreground", value=value)
        time.sleep(0.15)
    client.rest()
    if app.status() != 0:
        raise RuntimeError("the launch did not end as it should")
    return app.journal


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="fleet-") as folder:
        GOLDEN.write_bytes(play(Path(folder)))
