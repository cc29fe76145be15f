"""Deliberate defects of the harness app and the check that must catch each.

The names and their checks are relied on from outside; what a parameter means stands in
`docs/protocol.md`, section 5. A defect is named in no record: `fleet selftest` alone knows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from orchestrator.domain.memory_class import MemoryClass


@dataclass(frozen=True, slots=True)
class Defect:
    """One way in which the app can be made to go wrong."""

    name: str
    check: str  # the check that must fail
    draws: tuple[int, ...] = ()  # parameters a self-test draws from; none where there is none
    needs: MemoryClass | None = None  # the class of phone on which it shows, None for any
    slow: bool = False  # its session takes longer than a clean one


_LATE: Final = (1, 2, 7, 64)
_AT_TOKEN: Final = (300, 600, 1200)
_AT_SEQ: Final = (100, 200, 400)

DEFECTS: Final = (
    Defect("never-trim", "budget.never-exceeded"),
    Defect("trim-late", "budget.never-exceeded", _LATE),
    Defect("trim-early", "trim.on-schedule", _LATE),
    Defect("trim-keeps-head", "trim.keeps-tail"),
    Defect("trim-tail-off-by-one", "trim.keeps-tail", (1, 2)),
    Defect("trim-drops-bos", "trim.keeps-tail"),
    Defect("trim-forgets-count", "trim.count-consistent"),
    Defect("trim-stale-state", "context.proven"),
    Defect("double-feed-last", "context.proven"),
    Defect("drop-first-token", "context.proven"),
    Defect("resume-wrong-tail", "trim.on-schedule", _LATE),
    # Only where a scheduled prompt passes the budget is there something to truncate.
    Defect("silent-truncation", "trim.on-schedule", needs=MemoryClass.GB6),
    Defect("no-trim-notice", "trim.notice"),
    Defect("no-evict-notice", "evict.notice"),
    Defect("no-evict", "evict.on-warning"),
    Defect("evict-keeps-memory", "evict.frees-memory"),
    Defect("evict-during-prediction", "state.serialised"),
    Defect("late-handler", "evict.handler-first", _LATE),
    Defect("overlap", "state.serialised"),
    Defect("state-per-token", "state.lifecycle", slow=True),
    Defect("make-before-release", "state.lifecycle"),
    Defect("keeps-kv-in-background", "background.releases"),
    Defect("naive-8gib", "quant.matches-device", needs=MemoryClass.GB8),
    Defect("int8-on-6gb", "quant.matches-device", needs=MemoryClass.GB6),
    Defect("wrong-budget", "budget.matches-device", (50, 75, 90)),
    Defect("over-headroom", "memory.peak", (2, 3, 5)),
    Defect("kv-grows", "memory.static-kv", (50, 100, 200)),
    Defect("leak", "memory.drift", (32, 64, 128, 256)),
    Defect("jetsam", "jetsam.none", _AT_TOKEN, slow=True),
    Defect("crash", "crash.none", _AT_TOKEN, slow=True),
    Defect("hang", "hang.none", _AT_TOKEN, slow=True),
    Defect("exit-silently", "soak.completed", _AT_TOKEN, slow=True),
    Defect("stops-early", "soak.completed", _AT_TOKEN),
    Defect("ignore-end-token", "stream.ends-once"),
    Defect("double-end", "stream.ends-once"),
    Defect("split-utf8", "stream.text-valid"),
    Defect("constant-output", "stream.sane", (1, 100, 600)),
    Defect("ane-fallback", "plan.placement"),
    Defect("slow-load", "load.time", (3, 4, 10)),
    Defect("slow-steady", "perf.throughput", (15, 30, 45, 60), slow=True),
    Defect("slow-decay", "perf.decay", (15, 20, 30, 40), slow=True),
    # With the larger budget a step takes so long that too few of them fit a self-test.
    Defect("refeed-context", "perf.flat-decode", needs=MemoryClass.GB6, slow=True),
    Defect("parity-drift", "trim.parity"),
    Defect("telemetry-gap", "telemetry.complete", _AT_SEQ),
    Defect("telemetry-stops", "telemetry.complete", _AT_SEQ, slow=True),
    Defect("journal-differs", "telemetry.complete", _AT_SEQ),
)

DEFECT_BY_NAME: Final = {defect.name: defect for defect in DEFECTS}
