"""Check ids. The names are relied on from outside."""

from __future__ import annotations

from typing import Final

CHECK_IDS: Final = (
    "budget.never-exceeded",
    "budget.matches-device",
    "trim.on-schedule",
    "trim.keeps-tail",
    "trim.count-consistent",
    "trim.parity",
    "trim.notice",
    "evict.on-warning",
    "evict.frees-memory",
    "evict.notice",
    "evict.handler-first",
    "quant.matches-device",
    "memory.peak",
    "memory.drift",
    "memory.static-kv",
    "background.releases",
    "jetsam.none",
    "crash.none",
    "hang.none",
    "state.serialised",
    "state.lifecycle",
    "stream.ends-once",
    "stream.text-valid",
    "stream.sane",
    "context.proven",
    "perf.throughput",
    "perf.decay",
    "perf.flat-decode",
    "plan.placement",
    "load.time",
    "soak.completed",
    "telemetry.complete",
)
