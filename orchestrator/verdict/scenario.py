"""The scenario of a plan, as far as a verdict needs it: what was asked of the app."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec

from orchestrator.domain.errors import RunDirectoryError
from orchestrator.domain.launch_part import MOST_RELAUNCHES, LaunchPart, launch_part

if TYPE_CHECKING:
    from orchestrator.runlog.documents import PlanDocument


class Policy(msgspec.Struct, frozen=True):
    """Policies the app must follow."""

    long_prompt: str = "refuse"
    headroom_percent: float = 20.0
    low_memory_trim: bool = False


class Prompts(msgspec.Struct, frozen=True, kw_only=True):
    """The scheduled prompts."""

    min_ids: int
    max_ids: int
    turns_per_conversation: int
    turn_limit: int | None = None


class Speed(msgspec.Struct, frozen=True):
    """The speed that an engine of set speed is given."""

    decode_tokens_per_s: float | None = None


class BallastRamp(msgspec.Struct, frozen=True, kw_only=True):
    """Memory that the app maps on purpose, by token index."""

    from_token: int
    to_token: int
    hold_tokens: int = 0

    def may_change_between(self, tokens_before: int, tokens_after: int) -> bool:
        """Return whether the ballast may grow or go between two token indices."""
        end = self.to_token + self.hold_tokens
        return tokens_before <= end and tokens_after >= self.from_token


class Relaunches(msgspec.Struct, frozen=True):
    """Launches after the first; the soak is split over all of them."""

    count: Annotated[int, msgspec.Meta(ge=0, le=MOST_RELAUNCHES)] = 0


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """What `start` sends (docs/protocol.md 2.2), read leniently: the plan is the host's own."""

    prompts: Prompts
    seed: int
    duration_s: float
    policy: Policy = Policy()
    speed: Speed = Speed()
    end_every: int = 0
    sample_period_ms: float = 1000.0
    ballast: list[BallastRamp] = []
    stop_after_tokens: int | None = None
    relaunches: Relaunches = Relaunches()

    def part(self, number: int) -> LaunchPart:
        """Return what launch `number` was asked for, counted from 1."""
        count = self.relaunches.count
        return launch_part(self.duration_s, self.stop_after_tokens, count, number)

    @property
    def limit_ratio(self) -> float:
        """The part of the memory limit that the app may use."""
        return 1.0 - self.policy.headroom_percent / 100.0


def scenario_of(plan: PlanDocument) -> Scenario:
    """Return the scenario of a plan.

    Raises:
        RunDirectoryError: If the plan holds no readable scenario.
    """
    try:
        return msgspec.convert(plan.scenario, Scenario)
    except (msgspec.ValidationError, OverflowError) as error:
        raise RunDirectoryError(f"plan.json: scenario: {error}") from error
