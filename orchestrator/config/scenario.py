"""Scenarios by name, with the configuration's overrides, and as `start` sends them.

A scenario never leaves the host as a name: `start` sends it whole (`docs/protocol.md` 2.2), so
the app holds no list of its own.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from orchestrator.config.scenario_catalog import SCENARIOS
from orchestrator.domain.errors import UsageError

if TYPE_CHECKING:
    from orchestrator.config.model import FleetConfig, PolicyBlock, WorkloadBlock
    from orchestrator.config.workload import Scenario


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
    # The first ramp moves, those that come back later stay where they are.
    ballast = (*(replace(entry, **ramp) for entry in base.ballast[:1]), *base.ballast[1:])
    scenario = replace(base, ballast=ballast, **given)
    _check_ranges(scenario)
    return scenario


def with_budget_of(config: FleetConfig, scenario: Scenario) -> FleetConfig:
    """Return a configuration with the scenario's budget, where its policy sets none."""
    policy = config.policy
    if scenario.budget_tokens is None or policy.scenario_budget_tokens is not None:
        return config
    lowered = policy.model_copy(update={"scenario_budget_tokens": scenario.budget_tokens})
    return config.model_copy(update={"policy": lowered})


_RAMP_KEYS: Final = ("from_token", "to_token")


def _check_ranges(scenario: Scenario) -> None:
    if scenario.min_prompt_ids > scenario.max_prompt_ids:
        raise UsageError(
            f"workload.min_prompt_ids {scenario.min_prompt_ids} is over max_prompt_ids "
            f"{scenario.max_prompt_ids}"
        )
    stop_after = scenario.stop_after_tokens
    if stop_after is not None and stop_after <= scenario.relaunches:
        raise UsageError(
            f"workload.relaunches {scenario.relaunches} leaves launches without a token:"
            f" stop_after_tokens is {stop_after}"
        )
    for entry in scenario.ballast:
        if entry.from_token >= entry.to_token:
            raise UsageError(
                f"workload.ballast_from_token {entry.from_token} is not below ballast_to_token "
                f"{entry.to_token}"
            )


def wire_scenario(scenario: Scenario, policy: PolicyBlock, seed: int) -> dict[str, object]:
    """Return the scenario as the plan has it; each launch is sent its part (`launch_part`)."""
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
        "relaunches": {"count": scenario.relaunches} if scenario.relaunches else None,
    }
    return {name: value for name, value in members.items() if value}
