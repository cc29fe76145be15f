"""What a scenario is: the workload that the app is given, and the demands on what it shows.

Events are indexed by tokens, so that two runs with one seed are equal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Ballast:
    """One token-indexed ramp of memory that the app itself maps and touches."""

    from_token: int
    to_token: int
    to_percent: int  # of the per-process limit
    release: str  # "evict"
    hold_tokens: int


@dataclass(frozen=True, slots=True)
class TimedWarning:
    """A memory warning that the app gives itself."""

    at_token: int
    phase: Literal["decode", "prefill", "idle"]  # it waits for the next such moment


@dataclass(frozen=True, slots=True)
class BackgroundVisit:
    """The app leaves the foreground by itself and comes back."""

    at_token: int
    for_ms: int


@dataclass(frozen=True, slots=True)
class Scenario:
    """A soak's workload and its demands."""

    name: str
    title: str
    duration_s: float  # inference time
    decode_tokens_per_s: float
    prefill_tokens_per_s: float
    min_prompt_ids: int
    max_prompt_ids: int
    turn_limit_tokens: int
    turns_per_conversation: int
    end_every: int  # E of the contract
    sample_period_ms: int
    ballast: tuple[Ballast, ...]
    warn_at_tokens: tuple[int, ...]
    stop_after_tokens: int | None
    required_checks: tuple[str, ...]
    min_trims: int
    min_evictions: int  # by a real warning of the kernel
    timed_warnings: tuple[TimedWarning, ...] = ()
    pause_ms: int = 0  # between two turns
    audit_at_tokens: tuple[int, ...] = ()
    background: tuple[BackgroundVisit, ...] = ()
    reload_at_tokens: tuple[int, ...] = ()
    relaunches: int = 0  # of the app, each for an equal part of the soak
    virtual_speed: bool = False  # speed is judged on virtual phones too
    budget_tokens: int | None = None  # lowers every phone's budget, where the policy does not
    purpose: str = ""  # full sentences: what it is for and what it does

    @property
    def needs_swift(self) -> bool:
        """Whether it asks for what the stand-in app does not play."""
        phases = {warning.phase for warning in self.timed_warnings}
        rare = self.audit_at_tokens or self.background or self.reload_at_tokens
        return bool(rare) or bool(phases - {"decode"})
