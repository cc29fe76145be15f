"""Numbers and names as the narrow columns of a live view show them: pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orchestrator.domain.counting import counted
from orchestrator.live.concern import memory_share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.live.state import PhoneLive, RunLive

MIB: Final = 1024**2
GIB: Final = 1024**3
STEADY: Final = 0.05  # a change of speed that is none
NOTHING: Final = "-"
_BARS: Final = "▁▂▃▄▅▆▇█"
_PHASES: Final = {"facts": "check", "developer": "connect"}
_SHORT: Final = {"install": "inst"}  # beside a percentage


def duration(seconds: float | None) -> str:
    """Return a duration in at most 5 characters, below 100 days."""
    if seconds is None:
        return NOTHING
    whole = int(min(max(0.0, seconds), 99 * 86400))
    if whole < 60:
        return f"{whole}s"
    minutes, rest_s = divmod(whole, 60)
    if minutes < 10:
        return f"{minutes}m{rest_s:02d}"
    if minutes < 60:
        return f"{minutes}m"
    hours, rest_min = divmod(minutes, 60)
    return f"{hours}h{rest_min:02d}" if hours < 48 else f"{hours // 24}d{hours % 24:02d}"


def size(count: int | None) -> str:
    """Return bytes in at most 5 characters."""
    if count is None:
        return NOTHING
    value = max(0, count)
    if value < 1000 * MIB:
        return f"{value / MIB:.0f}M"
    return f"{min(value / GIB, 999):.1f}G" if value < 100 * GIB else f"{min(value // GIB, 9999)}G"


def phase_name(phone: PhoneLive) -> str:
    """Return what a phone does, or what it came to."""
    if phone.phase == "ended":
        return phone.outcome or ("died" if phone.died else "done")
    return _PHASES.get(phone.phase, phone.phase)


def phase(phone: PhoneLive) -> str:
    """Return what a phone does, with the progress of it."""
    name = phase_name(phone)
    if phone.progress_percent is None or phone.phase == "ended":
        return name
    return f"{_SHORT.get(name, name)} {phone.progress_percent:.0f}%"


def ran_and_left(phone: PhoneLive) -> str:
    """Return elapsed and remaining time."""
    if phone.elapsed_s is None:
        return NOTHING
    if phone.left_s is None:
        return duration(phone.elapsed_s)
    return f"{duration(phone.elapsed_s)}/{duration(phone.left_s)}"


def context(phone: PhoneLive) -> str:
    """Return tokens in the context against the budget."""
    if phone.context_tokens is None:
        return NOTHING
    return (
        f"{phone.context_tokens}/{NOTHING if phone.budget_tokens is None else phone.budget_tokens}"
    )


def memory(phone: PhoneLive) -> str:
    """Return the footprint and its share of the limit."""
    share = memory_share(phone)
    if share is None:
        return size(phone.footprint_bytes)
    return f"{size(phone.footprint_bytes)} {min(share, 9.99):.0%}"


def memory_long(phone: PhoneLive) -> str:
    """Return footprint, limit and share."""
    share = memory_share(phone)
    if share is None:
        return size(phone.footprint_bytes)
    return f"{size(phone.footprint_bytes)}/{size(phone.limit_bytes)} {min(share, 9.99):.0%}"


def speed(phone: PhoneLive, *, ascii_only: bool = False) -> str:
    """Return tokens per second with an arrow for where they go."""
    if phone.tokens_per_s is None:
        return NOTHING
    number = f"{min(phone.tokens_per_s, 9999):.{1 if phone.tokens_per_s < 100 else 0}f}"
    if phone.trend is None:
        return f"{number}  "
    up, down, level = ("^", "v", "=") if ascii_only else ("↗", "↘", "→")
    arrow = level if abs(phone.trend) < STEADY else up if phone.trend > 0 else down
    return f"{number} {arrow}"


def battery(phone: PhoneLive) -> str:
    """Return the battery's level, with a plus while it charges, or as it was before the attempt."""
    if phone.battery_percent is None:
        return NOTHING
    if phone.battery_at_gate:
        return f"~{phone.battery_percent:.0f}%"
    return f"{phone.battery_percent:.0f}%{'+' if phone.charging else ''}"


def sparkline(speeds: Sequence[float], cells: int) -> str:
    """Return the course of a speed from zero up; equal speeds are equally high."""
    if not speeds or max(speeds) <= 0:
        return ""
    top = max(speeds)
    count = min(cells, len(speeds))
    picked = [speeds[index * len(speeds) // count] for index in range(count)]
    return "".join(_BARS[min(7, int(max(0.0, value) / top * 7.99))] for value in picked)


def bar(share: float, cells: int, *, ascii_only: bool = False) -> str:
    """Return how far something is, always as long."""
    done = round(min(1.0, max(0.0, share)) * cells)
    full, rest = ("#", ".") if ascii_only else ("█", "░")
    return full * done + rest * (cells - done)


def phases_counted(phones: Sequence[PhoneLive]) -> str:
    """Return how many phones do what, in the order of a session."""
    counts: dict[str, int] = {}
    for phone in phones:
        name = phase_name(phone)
        counts[name] = counts.get(name, 0) + 1
    return ", ".join(f"{count} {name}" for name, count in counts.items())


def phones_counted(phones: Sequence[PhoneLive]) -> str:
    """Return how many phones there are and what they do."""
    return f"{counted(len(phones), 'phone')}: {phases_counted(phones)}"


def share_done(run: RunLive) -> float | None:
    """Return how much of all phones' inference time is over."""
    if not run.duration_s or not run.phones:
        return None
    over = {"ended", "collect"}
    shares = (
        1.0 if phone.phase in over else min(1.0, max(0.0, phone.elapsed_s or 0.0) / run.duration_s)
        for phone in run.phones
    )
    return sum(shares) / len(run.phones)


def origin(run: RunLive) -> str:
    """Return what must be said of a run on virtual phones or with the stand-in app."""
    words = [
        *(["virtual"] if run.virtual else []),
        *(["stand-in app"] if run.stand_in else []),
    ]
    return f"({', '.join(words)})" if words else ""
