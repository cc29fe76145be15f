"""Which records a check cannot do without: what an app must send to be held to it.

Without all of a check's kinds it is never passed; some can do with a part of them. `hello` is not
listed: without it there is no soak. A check without needs judges what the host saw.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection

NEEDS: Final[dict[str, tuple[str, ...]]] = {
    "budget.never-exceeded": ("prefill", "tokens", "sample", "trim", "evict"),
    "budget.matches-device": (),
    "trim.on-schedule": ("turn_start", "prefill", "tokens", "trim"),
    "trim.keeps-tail": ("turn_start", "tokens", "trim"),
    "trim.count-consistent": ("prefill", "tokens", "trim"),
    "trim.parity": ("parity",),
    "trim.notice": ("trim", "notice"),
    "evict.on-warning": ("memory_warning", "evict"),
    "evict.frees-memory": ("evict", "state"),
    "evict.notice": ("evict", "notice"),
    "evict.handler-first": ("handler",),
    "quant.matches-device": ("load",),
    "memory.peak": ("sample", "state", "trim", "evict"),
    "memory.drift": ("sample",),
    "memory.static-kv": ("sample", "state"),
    "background.releases": ("lifecycle", "state"),
    "jetsam.none": (),
    "crash.none": (),
    "hang.none": (),
    "state.serialised": ("prefill", "tokens", "state"),
    "state.lifecycle": ("state",),
    "stream.ends-once": ("turn_start", "turn_end"),
    "stream.text-valid": ("tokens", "turn_end"),
    "stream.sane": ("tokens",),
    "context.proven": ("turn_start", "tokens"),
    "perf.throughput": ("tokens",),
    "perf.decay": ("tokens",),
    "perf.flat-decode": ("tokens",),
    "plan.placement": ("load",),
    "load.time": ("load",),
    "soak.completed": ("bye",),
    "telemetry.complete": (),
}


def missing_kinds(check_id: str, sent: Collection[str]) -> tuple[str, ...]:
    """Return the kinds of record that a check needs and an app did not send."""
    return tuple(kind for kind in NEEDS[check_id] if kind not in sent)
