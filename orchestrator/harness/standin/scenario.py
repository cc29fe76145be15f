"""The scenario of a soak as `start` carries it (docs/protocol.md, 2.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from orchestrator.domain.memory_class import MemoryClass
from orchestrator.harness.standin.fields import FieldError

if TYPE_CHECKING:
    from orchestrator.harness.standin.fields import Fields

U64: Final = (1 << 64) - 1
MANY: Final = 10**12  # bound of counts that only have to be sane
LONGEST_MS: Final = 3_600_000
MOST_PROMPT_IDS: Final = 4096  # prompt and used ids travel in one line of at most 64 KiB


@dataclass(frozen=True, slots=True)
class Policy:
    """How the app keeps its context within memory."""

    budget_tokens: dict[MemoryClass, int]
    scenario_budget_tokens: int | None
    kv_ceiling_tokens: int | None
    pin: str  # `none` or `bos`
    long_prompt: str  # `refuse` or `truncate`
    headroom_percent: int  # of the limit
    low_memory_trim: bool  # R13


@dataclass(frozen=True, slots=True)
class Prompts:
    """Shape of the scheduled prompts."""

    min_ids: int
    max_ids: int
    turn_limit: int  # generated tokens
    turns_per_conversation: int


@dataclass(frozen=True, slots=True)
class BallastSpan:
    """Memory that the app holds on purpose, grown between two ordinals of tokens."""

    from_token: int
    to_token: int
    to_percent: int  # of the limit, footprint and ballast together
    hold_tokens: int  # released this long after `to_token` at the latest


@dataclass(frozen=True, slots=True)
class Scenario:
    """One soak of one launch."""

    name: str
    seed: int
    duration_s: float
    decode_tokens_per_s: float
    prefill_tokens_per_s: float
    policy: Policy
    prompts: Prompts
    end_every: int
    sample_period_ms: int
    ballast: tuple[BallastSpan, ...]
    warning_tokens: tuple[int, ...]  # ordinals of tokens after which the app warns itself
    stop_after_tokens: int | None
    pause_ms: int  # between two turns


# What the Swift app plays and this one does not.
_NOT_PLAYED: Final = ("audits", "background", "reloads", "engine_faults")


def read_scenario(fields: Fields) -> Scenario:
    """Return the scenario that a `start` command carries.

    Raises:
        FieldError: If a field is missing or out of its range.
    """
    speed = fields.child("speed")
    _refuse_what_is_not_played(fields, speed)
    return Scenario(
        name=fields.text("name"),
        seed=fields.integer("seed", 0, U64),
        duration_s=fields.positive("duration_s"),
        decode_tokens_per_s=speed.positive("decode_tokens_per_s"),
        prefill_tokens_per_s=speed.positive("prefill_tokens_per_s"),
        policy=_policy(fields.child("policy")),
        prompts=_prompts(fields.child("prompts")),
        end_every=fields.integer("end_every", 0, U64),
        sample_period_ms=fields.integer("sample_period_ms", 10, 3_600_000),
        ballast=tuple(_ballast(entry) for entry in fields.children("ballast")),
        warning_tokens=tuple(w.integer("at_token", 1, MANY) for w in fields.children("warnings")),
        stop_after_tokens=fields.optional_integer("stop_after_tokens", 1, MANY),
        pause_ms=fields.optional_integer("pause_ms", 0, LONGEST_MS) or 0,
    )


def _refuse_what_is_not_played(fields: Fields, speed: Fields) -> None:
    """Refuse a scenario that this app would play otherwise than it says.

    Raises:
        FieldError: Naming the member.
    """
    for name in _NOT_PLAYED:
        if fields.has(name) and fields.children(name):
            raise FieldError(f"scenario.{name} is not played by the stand-in app")
    if fields.has("sampling"):
        fields.child("sampling").text("mode", ("greedy",))
    if speed.has("thermal_percent"):
        raise FieldError("scenario.speed.thermal_percent is not played by the stand-in app")
    for warning in fields.children("warnings"):
        if warning.has("phase"):
            warning.text("phase", ("decode",))


def _policy(fields: Fields) -> Policy:
    budgets = fields.child("budget_tokens")
    return Policy(
        budget_tokens={
            memory_class: budgets.integer(memory_class, 1, MANY)
            for memory_class in MemoryClass
            if budgets.has(memory_class)
        },
        scenario_budget_tokens=fields.optional_integer("scenario_budget_tokens", 1, MANY),
        kv_ceiling_tokens=fields.optional_integer("kv_ceiling_tokens", 1, MANY),
        pin=fields.text("pin", ("none", "bos")),
        long_prompt=fields.text("long_prompt", ("refuse", "truncate")),
        headroom_percent=fields.integer("headroom_percent", 0, 100),
        low_memory_trim=fields.flag("low_memory_trim"),
    )


def _prompts(fields: Fields) -> Prompts:
    min_ids = fields.integer("min_ids", 1, MOST_PROMPT_IDS)
    return Prompts(
        min_ids=min_ids,
        max_ids=fields.integer("max_ids", min_ids, MOST_PROMPT_IDS),
        turn_limit=fields.integer("turn_limit", 1, MANY),
        turns_per_conversation=fields.integer("turns_per_conversation", 1, MANY),
    )


def _ballast(fields: Fields) -> BallastSpan:
    from_token = fields.integer("from_token", 1, MANY)
    fields.text("release", ("evict",))
    return BallastSpan(
        from_token=from_token,
        to_token=fields.integer("to_token", from_token, MANY),
        to_percent=fields.integer("to_percent", 1, 200),
        hold_tokens=fields.integer("hold_tokens", 0, MANY),
    )
