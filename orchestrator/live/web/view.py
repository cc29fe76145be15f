"""What the page shows, as the words of the terminal's table: the page's script formats nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from orchestrator.live import words
from orchestrator.live.concern import memory_share

if TYPE_CHECKING:
    from orchestrator.live.state import PhoneLive, RunLive


class PhoneView(msgspec.Struct, frozen=True, kw_only=True):
    """One row; shares are 0 to 1 or None where unknown."""

    alias: str
    model: str
    phase: str
    level: str  # calm, note, alarm, failed
    outcome: str | None
    time: str
    time_share: float | None
    context: str
    context_share: float | None
    trims: str
    memory: str
    memory_share: float | None
    speed: str
    speeds: list[float]
    thermal: str
    battery: str
    concern: str
    last: str


class PageView(msgspec.Struct, frozen=True, kw_only=True):
    """The page; `phones` has the worst first."""

    run_id: str
    state: str
    outcome: str | None
    line: str  # how long, which scenario
    origin: str  # virtual phones, stand-in app
    counts: str
    share: float | None  # of the inference time of all phones
    over: bool
    phones: list[PhoneView]


def page_view(run: RunLive) -> PageView:
    """Return what is shown of a run."""
    since_s = (run.ended_s or run.now_s) - run.started_s
    state = run.state
    if state == "left":
        state = "left by its process: `fleet resume` goes on with it"
    elif state == "running" and run.stopped_by:
        state = f"stopping ({run.stopped_by})"
    return PageView(
        run_id=run.run_id,
        state=state,
        outcome=run.outcome,
        line=f"{run.scenario}, {words.duration(since_s)}",
        origin=words.origin(run).strip("()"),
        counts=words.phones_counted(run.phones),
        share=words.share_done(run),
        over=run.state != "running",
        phones=[_phone(phone, run) for phone in run.phones],
    )


def _phone(phone: PhoneLive, run: RunLive) -> PhoneView:
    last = ""
    if phone.last is not None:
        ago = f"{words.duration(run.now_s - phone.last.at_s)} ago"
        last = ago if phone.last.text == phone.concern else f"{phone.last.text}, {ago}"
    context = phone.context_tokens
    return PhoneView(
        alias=phone.alias,
        model=f"{phone.model}, iOS {phone.os}",
        phase=words.phase(phone),
        level=phone.level.name.lower(),
        outcome=phone.outcome,
        time=words.ran_and_left(phone),
        time_share=_share(phone.elapsed_s, run.duration_s),
        context=words.context(phone),
        context_share=_share(context, phone.budget_tokens),
        trims=f"{phone.trims} / {phone.evictions}",
        memory=words.memory_long(phone),
        memory_share=_bounded(memory_share(phone)),
        speed=words.speed(phone).strip(),
        speeds=phone.speeds,
        thermal=phone.thermal or words.NOTHING,
        battery=words.battery(phone),
        concern=phone.concern or "",
        last=last,
    )


def _share(value: float | None, whole: float | None) -> float | None:
    return None if value is None or not whole or whole < 0 else _bounded(value / whole)


def _bounded(share: float | None) -> float | None:
    return None if share is None else min(1.0, max(0.0, share))
