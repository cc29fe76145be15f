"""Scenarios: what the app is asked to do, and what a phone must have shown before it may pass.

A scenario never leaves the host as a name: `start` sends it whole (`docs/protocol.md` 2.2), so
the app holds no list of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from orchestrator.domain.checks import CHECK_IDS
from orchestrator.domain.errors import UsageError

if TYPE_CHECKING:
    from orchestrator.config.model import PolicyBlock, WorkloadBlock


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
    virtual_speed: bool = False  # speed is judged on virtual phones too


SMOKE: Final = Scenario(
    name="smoke",
    title="Every part of the contract once, in under a minute",
    duration_s=45.0,
    decode_tokens_per_s=200.0,
    prefill_tokens_per_s=8000.0,
    min_prompt_ids=300,
    max_prompt_ids=500,
    turn_limit_tokens=256,
    turns_per_conversation=16,
    end_every=1000,
    sample_period_ms=1000,
    ballast=(
        Ballast(from_token=1600, to_token=2400, to_percent=96, release="evict", hold_tokens=400),
    ),
    warn_at_tokens=(),
    stop_after_tokens=None,
    required_checks=(
        "budget.never-exceeded",
        "budget.matches-device",
        "trim.on-schedule",
        "trim.keeps-tail",
        "trim.notice",
        "evict.on-warning",
        "evict.frees-memory",
        "evict.notice",
        "quant.matches-device",
        "memory.peak",
        "jetsam.none",
        "crash.none",
        "state.serialised",
        "context.proven",
        "soak.completed",
        "telemetry.complete",
    ),
    min_trims=3,
    min_evictions=1,
)

# Every check's trigger in some seconds of an engine of set speed. Prompts pass the smallest budget
# now and then, so that refusals are met; all events stand apart from the ramp of ballast.
SELFTEST: Final = Scenario(
    name="selftest",
    title="Every check's trigger, token-indexed and fast: what `fleet selftest` runs",
    duration_s=24.0,
    decode_tokens_per_s=400.0,
    prefill_tokens_per_s=12_000.0,
    min_prompt_ids=60,
    max_prompt_ids=440,
    turn_limit_tokens=160,
    turns_per_conversation=6,
    end_every=300,
    sample_period_ms=50,
    ballast=(
        Ballast(from_token=900, to_token=1150, to_percent=96, release="evict", hold_tokens=600),
    ),
    warn_at_tokens=(250,),
    stop_after_tokens=2000,
    required_checks=CHECK_IDS,
    min_trims=3,
    min_evictions=1,
    timed_warnings=(TimedWarning(450, "prefill"), TimedWarning(620, "idle")),
    pause_ms=20,
    audit_at_tokens=(200, 400, 800, 1400, 1500, 1600, 1700, 1800, 1900),
    background=(BackgroundVisit(700, 1500),),
    reload_at_tokens=(1350,),
    virtual_speed=True,
)

SCENARIOS: Final = {SMOKE.name: SMOKE, SELFTEST.name: SELFTEST}


def scenario_of(name: str, workload: WorkloadBlock, duration_s: float | None) -> Scenario:
    """Return a scenario with the workload's overrides; what it requires is never lowered.

    Args:
        name: As in `fleet.yaml`.
        workload: Overrides; None keeps the scenario's own value.
        duration_s: `--duration`, inference seconds per phone; None keeps the scenario's own.

    Raises:
        UsageError: For a name that is not a scenario, or ranges that contradict each other.
    """
    base = SCENARIOS.get(name)
    if base is None:
        known = ", ".join(SCENARIOS)
        raise UsageError(f"unknown scenario {name!r}", remedy=f"The scenarios are {known}")
    given = workload.model_dump(exclude_none=True)
    ramp = {key: given.pop(f"ballast_{key}") for key in _RAMP_KEYS if f"ballast_{key}" in given}
    if duration_s is not None:
        given["duration_s"] = duration_s
    ballast = tuple(replace(entry, **ramp) for entry in base.ballast)
    scenario = replace(base, ballast=ballast, **given)
    _check_ranges(scenario)
    return scenario


_RAMP_KEYS: Final = ("from_token", "to_token")


def _check_ranges(scenario: Scenario) -> None:
    if scenario.min_prompt_ids > scenario.max_prompt_ids:
        raise UsageError(
            f"workload.min_prompt_ids {scenario.min_prompt_ids} is over max_prompt_ids "
            f"{scenario.max_prompt_ids}"
        )
    for entry in scenario.ballast:
        if entry.from_token >= entry.to_token:
            raise UsageError(
                f"workload.ballast_from_token {entry.from_token} is not below ballast_to_token "
                f"{entry.to_token}"
            )


def wire_scenario(scenario: Scenario, policy: PolicyBlock, seed: int) -> dict[str, object]:
    """Return the scenario exactly as `start` sends it."""
    wire: dict[str, object] = {
        "name": scenario.name,
        "seed": seed,
        "duration_s": scenario.duration_s,
        "speed": {
            "decode_tokens_per_s": scenario.decode_tokens_per_s,
            "prefill_tokens_per_s": scenario.prefill_tokens_per_s,
        },
        "policy": {
            "budget_tokens": {name.value: count for name, count in policy.budget_tokens.items()},
            "scenario_budget_tokens": policy.scenario_budget_tokens,
            "kv_ceiling_tokens": None,
            "pin": policy.pin,
            "long_prompt": policy.long_prompt,
            "headroom_percent": policy.headroom_percent,
        },
        "prompts": {
            "min_ids": scenario.min_prompt_ids,
            "max_ids": scenario.max_prompt_ids,
            "turn_limit": scenario.turn_limit_tokens,
            "turns_per_conversation": scenario.turns_per_conversation,
        },
        "end_every": scenario.end_every,
        "sample_period_ms": scenario.sample_period_ms,
        "ballast": [
            {
                "from_token": entry.from_token,
                "to_token": entry.to_token,
                "to_percent": entry.to_percent,
                "release": entry.release,
                "hold_tokens": entry.hold_tokens,
            }
            for entry in scenario.ballast
        ],
        "warnings": [{"at_token": token} for token in scenario.warn_at_tokens]
        + [{"at_token": at.at_token, "phase": at.phase} for at in scenario.timed_warnings],
        "stop_after_tokens": scenario.stop_after_tokens,
    }
    return wire | _rare_members(scenario)


def _rare_members(scenario: Scenario) -> dict[str, object]:
    """Return the members that may be missing: an app need not know what it is not asked."""
    members: dict[str, object] = {
        "pause_ms": scenario.pause_ms,
        "audits": [{"at_token": token} for token in scenario.audit_at_tokens],
        "background": [
            {"at_token": visit.at_token, "for_ms": visit.for_ms} for visit in scenario.background
        ],
        "reloads": [{"at_token": token} for token in scenario.reload_at_tokens],
    }
    return {name: value for name, value in members.items() if value}
