"""Honest apps on noisy phones: what clean sessions look like that must raise nothing.

Each session draws its noise from a seed: jitter and pauses of steps, a footprint that wanders and
spikes, a warm-up, heat that slows the phone, warnings at any step, background visits, audits.
"""

from __future__ import annotations

import random
from dataclasses import replace

from tests.verdict.telemetry_factory import App
from tests.verdict.telemetry_spec import FULL, LOADED_BYTES, MIB, STEP_NS, Row, Spec

THERMAL_STATES = ("nominal", "fair", "serious")
SLOWER_BY_HEAT = {"nominal": 1.0, "fair": 1.05, "serious": 1.8}


def noisy_spec(seed: int) -> Spec:
    """Draw what the app is asked to do."""
    draw = random.Random(seed)
    tokens = draw.randint(200, 330)
    return replace(
        FULL,
        seed=seed,
        budget=draw.choice((48, 64, 96)),
        pin=draw.randint(0, 1),
        chunk=draw.choice((4, 8, 16)),
        max_ids=draw.choice((20, 40, 70)),
        turn_limit=draw.randint(16, 40),
        turns_per_conversation=draw.randint(1, 6),
        end_every=draw.choice((0, 25, 60)),
        stop_after=tokens,
        warn_in_predictions=frozenset(draw.sample(range(1, 400), draw.randint(0, 8))),
        warn_after_turns=frozenset(draw.sample(range(1, 20), draw.randint(0, 3))),
        audit_at_tokens=frozenset(draw.sample(range(20, tokens), 4)),
        background_at_tokens=frozenset(draw.sample(range(20, tokens), draw.randint(0, 2))),
    )


class NoisyApp(App):
    """Keeps the contract; its times and its footprint are those of a busy phone."""

    def __init__(self, seed: int) -> None:
        super().__init__(noisy_spec(seed))
        self.noise = random.Random(seed + 1)
        self.wander_bytes = 0
        self.debt_ns = 0  # by which the engine is behind its deadlines
        self.heats_at = self.noise.randint(100, 800)  # token; often never

    def memory(self) -> dict[str, int]:
        self.wander_bytes += self.noise.randint(-MIB // 16, MIB // 16)
        self.wander_bytes = max(-MIB, min(MIB, self.wander_bytes))
        spike = self.noise.random() < 0.03
        warm_up = min(3 * MIB, self.tokens_total * MIB // 20)
        loaded = self.footprint >= LOADED_BYTES
        extra = self.wander_bytes + warm_up + (6 * MIB if spike else 0)
        footprint = self.footprint + (extra if loaded else 0)
        return {"footprint": footprint, "host_bytes": footprint // 32}

    def predict(self, ids: list[int], purpose: str) -> None:
        self.heat_up()
        late_ns = int(STEP_NS * abs(self.noise.gauss(0.0, 0.04)))
        if self.noise.random() < 0.01:
            late_ns += self.noise.randint(0, 5) * STEP_NS
        slower_ns = int(STEP_NS * (SLOWER_BY_HEAT[self.thermal] - 1.0))
        super().predict(ids, purpose)
        # Deadlines are absolute: a late step is made up for by shorter ones.
        paid_ns = min(self.debt_ns, int(STEP_NS * 0.4))
        self.debt_ns += late_ns - paid_ns
        self.t_ns += late_ns + slower_ns - paid_ns
        self.span = (self.span[0], self.t_ns)

    def heat_up(self) -> None:
        """The phone says its thermal state in the next sample, so one is written at once."""
        due = THERMAL_STATES[min(2, self.tokens_total // self.heats_at)]
        if due != self.thermal:
            self.thermal = due
            self.write("sample", **self.sample_fields())

    def sample_fields(self) -> Row:
        return {**super().sample_fields(), "battery_percent": 80.0, "charging": True}
