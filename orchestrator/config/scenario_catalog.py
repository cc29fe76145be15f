"""The scenarios there are. `fleet explain NAME` prints each in words.

All events of a scenario's first cycle lie in its first 4000 tokens, so that a run of some seconds
with a fast engine exercises what the long one does: what a scenario requires is never lowered.
"""

from __future__ import annotations

from typing import Final

from orchestrator.config.workload import BackgroundVisit, Ballast, Scenario, TimedWarning
from orchestrator.domain.checks import CHECK_IDS

_CONTRACT_CHECKS: Final = (
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
)
_WITHOUT_WARNINGS: Final = tuple(
    check for check in _CONTRACT_CHECKS if not check.startswith("evict.")
)
_STREAM_CHECKS: Final = ("stream.ends-once", "stream.text-valid", "stream.sane", "hang.none")
_LONG_CHECKS: Final = (
    *_CONTRACT_CHECKS,
    *_STREAM_CHECKS,
    "trim.count-consistent",
    "evict.handler-first",
    "state.lifecycle",
    "memory.drift",
    "memory.static-kv",
    "perf.throughput",
    "perf.decay",
)


def _ramp(from_token: int) -> Ballast:
    """Return a ramp that brings the kernel's warning and is gone 600 tokens later."""
    return Ballast(from_token, from_token + 400, to_percent=96, release="evict", hold_tokens=200)


def _cycles(first: tuple[int, ...], every_tokens: int, count: int) -> tuple[int, ...]:
    """Return token indices, and the same again in each later cycle."""
    return tuple(cycle * every_tokens + token for cycle in range(count) for token in first)


SMOKE: Final = Scenario(
    name="smoke",
    title="Every part of the contract once, in under a minute",
    purpose=(
        "The first run on a new phone or a new build. Turns pass the budget several times, and one"
        " ramp of ballast brings the kernel's own memory warning."
    ),
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
    required_checks=_CONTRACT_CHECKS,
    min_trims=3,
    min_evictions=1,
)

NIGHTLY: Final = Scenario(
    name="nightly",
    title="The whole contract over and over for an hour",
    purpose=(
        "What CI runs every night. Each cycle of 20,000 tokens has warnings in decode, prefill and"
        " idle, one ramp of ballast to the kernel's warning, a visit to the background, a reload"
        " of the model and audits of the logits."
    ),
    duration_s=3600.0,
    decode_tokens_per_s=30.0,
    prefill_tokens_per_s=2000.0,
    min_prompt_ids=200,
    max_prompt_ids=500,
    turn_limit_tokens=256,
    turns_per_conversation=16,
    end_every=1000,
    sample_period_ms=1000,
    ballast=tuple(_ramp(token) for token in _cycles((1200,), 20_000, 6)),
    warn_at_tokens=_cycles((400,), 20_000, 6),
    stop_after_tokens=None,
    required_checks=(*_LONG_CHECKS, "background.releases", "trim.parity", "load.time"),
    min_trims=5,
    min_evictions=1,
    timed_warnings=(
        *(TimedWarning(token, "prefill") for token in _cycles((700,), 20_000, 6)),
        *(TimedWarning(token, "idle") for token in _cycles((950,), 20_000, 6)),
    ),
    pause_ms=50,
    audit_at_tokens=_cycles((200, 600, 2100, 2400, 2700), 20_000, 6),
    background=tuple(BackgroundVisit(token, 1500) for token in _cycles((1900,), 20_000, 6)),
    reload_at_tokens=_cycles((2250,), 20_000, 6),
)

THERMAL: Final = Scenario(
    name="thermal",
    title="Full speed without a pause until the phone is hot",
    purpose=(
        "How the speed holds while the phone warms. No pause, no warning: nothing but prefill and"
        " decode for half an hour; speed is judged for each thermal state by itself."
    ),
    duration_s=1800.0,
    decode_tokens_per_s=200.0,
    prefill_tokens_per_s=8000.0,
    min_prompt_ids=200,
    max_prompt_ids=500,
    turn_limit_tokens=512,
    turns_per_conversation=16,
    end_every=0,
    sample_period_ms=1000,
    ballast=(),
    warn_at_tokens=(),
    stop_after_tokens=None,
    required_checks=(
        *_WITHOUT_WARNINGS,
        "hang.none",
        "memory.drift",
        "perf.throughput",
        "perf.decay",
    ),
    min_trims=3,
    min_evictions=0,
)

PRESSURE: Final = Scenario(
    name="pressure",
    title="Memory warnings in every phase, three of them the kernel's",
    purpose=(
        "Whether every warning evicts, gives the memory back and is survived. Three ramps of"
        " ballast bring the kernel's warning; between them the app warns itself in decode, prefill"
        " and idle."
    ),
    duration_s=300.0,
    decode_tokens_per_s=100.0,
    prefill_tokens_per_s=8000.0,
    min_prompt_ids=200,
    max_prompt_ids=400,
    turn_limit_tokens=160,
    turns_per_conversation=8,
    end_every=1000,
    sample_period_ms=500,
    ballast=(_ramp(500), _ramp(1500), _ramp(2500)),
    warn_at_tokens=(300,),
    stop_after_tokens=None,
    required_checks=(
        *_CONTRACT_CHECKS,
        *_STREAM_CHECKS,
        "evict.handler-first",
        "state.lifecycle",
        "trim.count-consistent",
    ),
    min_trims=3,
    min_evictions=3,
    timed_warnings=(TimedWarning(1250, "prefill"), TimedWarning(2250, "idle")),
    pause_ms=20,
)

BUDGET_EDGE: Final = Scenario(
    name="budget-edge",
    title="Prompts as long as the budget, a few ids more and less",
    purpose=(
        "Off-by-one faults of the budget. The budget is 512 tokens on every phone, prompts have"
        " 430 to 520 ids: most just fit, each turn trims, those that cannot fit are refused."
    ),
    duration_s=180.0,
    decode_tokens_per_s=100.0,
    prefill_tokens_per_s=8000.0,
    min_prompt_ids=430,
    max_prompt_ids=520,
    turn_limit_tokens=96,
    turns_per_conversation=8,
    end_every=1000,
    sample_period_ms=500,
    ballast=(),
    warn_at_tokens=(),
    stop_after_tokens=None,
    required_checks=(
        *_WITHOUT_WARNINGS,
        *_STREAM_CHECKS,
        "state.lifecycle",
        "trim.count-consistent",
    ),
    min_trims=10,
    min_evictions=0,
    budget_tokens=512,
)

BACKGROUND: Final = Scenario(
    name="background",
    title="The app leaves the foreground in the middle of its work and comes back",
    purpose=(
        "Whether the state goes when the app does: iOS kills large apps in the background first."
        " Three visits of one to three seconds, in different turns."
    ),
    duration_s=300.0,
    decode_tokens_per_s=100.0,
    prefill_tokens_per_s=8000.0,
    min_prompt_ids=300,
    max_prompt_ids=500,
    turn_limit_tokens=256,
    turns_per_conversation=8,
    end_every=1000,
    sample_period_ms=500,
    ballast=(),
    warn_at_tokens=(),
    stop_after_tokens=None,
    required_checks=(
        *_WITHOUT_WARNINGS,
        *_STREAM_CHECKS,
        "background.releases",
        "state.lifecycle",
    ),
    min_trims=3,
    min_evictions=0,
    background=(
        BackgroundVisit(500, 1000),
        BackgroundVisit(1300, 2000),
        BackgroundVisit(2100, 3000),
    ),
)

COMPUTE_UNITS: Final = Scenario(
    name="compute-units",
    title="Where the model runs, how long it loads, whether the logits hold",
    purpose=(
        "One run for each value of `model.compute_units`, to be compared with `fleet compare`."
        " The app is launched twice, each time for half of the soak, and each launch loads the"
        " model again twice, so that the first load is told from those that find the compiler's"
        " cache; audits compare logits; steps are timed with few and many rows. A virtual phone's"
        " witness engine has no compute units."
    ),
    duration_s=300.0,
    decode_tokens_per_s=100.0,
    prefill_tokens_per_s=8000.0,
    min_prompt_ids=100,
    max_prompt_ids=400,
    turn_limit_tokens=256,
    turns_per_conversation=8,
    end_every=1000,
    sample_period_ms=500,
    ballast=(),
    warn_at_tokens=(),
    stop_after_tokens=None,
    required_checks=(
        *_WITHOUT_WARNINGS,
        "plan.placement",
        "load.time",
        "trim.parity",
        "perf.throughput",
        "perf.flat-decode",
    ),
    min_trims=3,
    min_evictions=0,
    audit_at_tokens=(200, 500, 1000, 1400, 1800, 2200),
    reload_at_tokens=(700, 1600),
    relaunches=1,
)

ENDURANCE: Final = Scenario(
    name="endurance",
    title="A working day of use",
    purpose=(
        "Leaks, drift and slow decay over eight hours: turns with pauses, and a memory warning and"
        " a ramp of ballast every 40,000 tokens. No reload and no visit to the background, so that"
        " one launch and one model live all day."
    ),
    duration_s=8 * 3600.0,
    decode_tokens_per_s=30.0,
    prefill_tokens_per_s=2000.0,
    min_prompt_ids=100,
    max_prompt_ids=500,
    turn_limit_tokens=256,
    turns_per_conversation=16,
    end_every=1000,
    sample_period_ms=1000,
    ballast=tuple(_ramp(token) for token in _cycles((1000,), 40_000, 22)),
    warn_at_tokens=_cycles((2000,), 40_000, 22),
    stop_after_tokens=None,
    required_checks=_LONG_CHECKS,
    min_trims=5,
    min_evictions=1,
    pause_ms=100,
)

# Every check's trigger in some seconds of an engine of set speed. Prompts pass the smallest budget
# now and then, so that refusals are met; all events stand apart from the ramp of ballast.
SELFTEST: Final = Scenario(
    name="selftest",
    title="Every check's trigger, token-indexed and fast: what `fleet selftest` runs",
    purpose=(
        "Not for phones: the self-test breaks the app on purpose and holds that the named check"
        " fails."
    ),
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

# What `fleet calibrate` runs: up to the kernel's warning, an eviction, then past the limit in one
# step, which no handler can answer. Not among the scenarios of a soak: its apps are to die.
CALIBRATION: Final = Scenario(
    name="calibration",
    title="Up to the warning, then past the limit",
    purpose="What `fleet calibrate` runs: the app is to die at its memory limit.",
    duration_s=60.0,
    decode_tokens_per_s=300.0,
    prefill_tokens_per_s=8000.0,
    min_prompt_ids=60,
    max_prompt_ids=200,
    turn_limit_tokens=160,
    turns_per_conversation=6,
    end_every=0,
    sample_period_ms=50,
    ballast=(
        Ballast(from_token=150, to_token=450, to_percent=96, release="evict", hold_tokens=150),
        Ballast(from_token=700, to_token=700, to_percent=130, release="evict", hold_tokens=100),
    ),
    warn_at_tokens=(60,),
    stop_after_tokens=900,
    required_checks=(),
    min_trims=0,
    min_evictions=0,
)

SCENARIOS: Final = {
    scenario.name: scenario
    for scenario in (
        SMOKE,
        NIGHTLY,
        THERMAL,
        PRESSURE,
        BUDGET_EDGE,
        BACKGROUND,
        COMPUTE_UNITS,
        ENDURANCE,
        SELFTEST,
    )
}
