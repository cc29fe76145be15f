"""Phones and runs as a live view gets them."""

from __future__ import annotations

from typing import Any

from orchestrator.live.concern import judged, worst_first
from orchestrator.live.state import PhoneLive, Remark, RunLive
from orchestrator.runlog.documents import SummaryDocument, SummaryPhone
from tests.report.runs import UDID

NOW_S = 2_000_000_000.0
GIB = 1024**3


def phone(alias: str = "bench-01", **changes: Any) -> PhoneLive:  # noqa: ANN401 - any field
    facts: dict[str, Any] = {
        "model": "iPhone 15 Pro",
        "os": "18.6",
        "phase": "soak",
        "elapsed_s": 75.0,
        "left_s": 7125.0,
        "context_tokens": 812,
        "budget_tokens": 1024,
        "trims": 12,
        "evictions": 1,
        "footprint_bytes": GIB,
        "peak_bytes": 2 * GIB,
        "limit_bytes": 3 * GIB,
        "tokens_per_s": 58.14,
        "trend": 0.0,
        "speeds": [58.0, 59.0, 57.5],
        "thermal": "nominal",
        "battery_percent": 87.0,
        "silent_s": 0.4,
        "last": Remark(NOW_S - 2, "trim 1024 to 512"),
    }
    return judged(PhoneLive(alias=alias, **(facts | changes)))


def run(*phones: PhoneLive, **changes: Any) -> RunLive:  # noqa: ANN401 - any field
    facts: dict[str, Any] = {
        "run_id": "20261129T175801Z-78a7a1",
        "state": "running",
        "started_s": NOW_S - 80,
        "now_s": NOW_S,
        "ended_s": None,
        "virtual": True,
        "stand_in": False,
        "scenario": "smoke",
        "duration_s": 7200.0,
    }
    return RunLive(phones=worst_first(phones), **(facts | changes))


def summary(outcome: str, cause: str) -> SummaryDocument:
    """The summary of the run that `tests.report.runs` writes."""
    one = SummaryPhone(
        udid=UDID,
        alias="desk-15pro",
        model="iPhone 15 Pro",
        product_type="iPhone16,1",
        os="18.6",
        outcome=outcome,
        cause=cause,
        checks=[],
    )
    return SummaryDocument(run_id="run", outcome=outcome, exit_code=0, virtual=True, phones=[one])


HOSTILE = "\x1b[2J\x1b]0;x\x07\u202egpj\u0000\r\n\t\u200bbell\x07" + "漢" * 300
