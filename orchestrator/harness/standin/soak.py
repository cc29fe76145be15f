"""Runs one scenario: turn after turn, with ballast and warnings at their tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orchestrator.domain.mixing import prompt_ids
from orchestrator.harness.standin.ballast import Ballast, Growth, Leak
from orchestrator.harness.standin.clock import NS_PER_S, LaunchClock
from orchestrator.harness.standin.context import ContextWindow, UntrimmedWindow
from orchestrator.harness.standin.defects import DefectName
from orchestrator.harness.standin.engine import StaleTrimEngine, WitnessEngine
from orchestrator.harness.standin.hello import hello_fields
from orchestrator.harness.standin.pipeline import Pipeline
from orchestrator.harness.standin.ports import Turn, TurnRules
from orchestrator.harness.standin.sampler import PhoneConditions, Sampler
from orchestrator.harness.standin.telemetry import WARNING_CHANNEL, Telemetry, TurnView
from orchestrator.harness.standin.text import TextView

if TYPE_CHECKING:
    from orchestrator.harness.standin.identity import Launch
    from orchestrator.harness.standin.journal import Journal
    from orchestrator.harness.standin.memory import MemoryGauge
    from orchestrator.harness.standin.pressure import Pressure
    from orchestrator.harness.standin.start import SoakPlan

_PAUSE_STEP_NS: Final = NS_PER_S // 100
_NS_PER_MS: Final = NS_PER_S // 1000
MOST_BARREN_TURNS: Final = 16  # turns in a row without a sample: the soak would never move


class Soak:
    """One soak of one launch: the runner and the pipeline's attendant."""

    def __init__(
        self,
        launch: Launch,
        plan: SoakPlan,
        journal: Journal,
        gauge: MemoryGauge,
        clock: LaunchClock,
        pressure: Pressure,
        conditions: PhoneConditions,
    ) -> None:
        """Put the parts together; nothing is written or mapped yet."""
        self._launch, self._plan, self._gauge, self._clock = launch, plan, gauge, clock
        self._pressure, self._conditions = pressure, conditions
        scenario, model = plan.scenario, plan.model
        stale = launch.defect.name is DefectName.TRIM_STALE_STATE
        engine_type = StaleTrimEngine if stale else WitnessEngine
        self._engine = engine_type(model, scenario, plan.nonce, launch.memory_scale, clock)
        self.telemetry = Telemetry(
            journal,
            gauge,
            clock,
            state_bytes=self._engine.state_bytes,
            new_text=lambda: TextView(model.text, model.end_id),
        )
        rules = TurnRules(frozenset({model.end_id}), model.chunk)
        self.pipeline = Pipeline(
            self._new_window, rules, self._engine, self.telemetry, self, pressure
        )
        self._sampler = Sampler(
            self.telemetry,
            gauge,
            clock,
            period_ms=scenario.sample_period_ms,
            facts=self._sample_facts,
            tick=self._end_if_due,
        )
        self._ballasts = [
            Ballast(span, gauge, self.telemetry.breadcrumb) for span in scenario.ballast
        ]
        leak_from = launch.defect.leak_from_token
        leaks = [] if leak_from is None else [Leak(leak_from, gauge)]
        self._growths: list[Growth] = [*self._ballasts, *leaks]
        self._warning_tokens = frozenset(scenario.warning_tokens)
        self._view = TurnView()

    def _new_window(self) -> ContextWindow:
        untrimmed = self._launch.defect.name is DefectName.NEVER_TRIM
        window_type = UntrimmedWindow if untrimmed else ContextWindow
        return window_type(
            self._plan.budget,
            len(self._plan.pin_ids),
            truncates=self._plan.scenario.policy.long_prompt == "truncate",
        )

    def open(self) -> None:
        """Load the model and write the first records; from here on warnings are taken."""
        telemetry = self.telemetry
        telemetry.record("hello", **hello_fields(self._launch, self._plan, self._gauge.read()))
        telemetry.breadcrumb("load", self._plan.model.quantization)
        self._load()
        telemetry.record("handler", channel=WARNING_CHANNEL, registered=True)
        self._sampler.start()

    def _load(self) -> None:
        started_ns, model = self._clock.now_ns(), self._plan.model
        self._engine.load()
        self._clock.sleep_until_ns(started_ns + model.load_ms * _NS_PER_MS)
        mark = self._launch.container / "Library" / "Caches" / "loaded" / model.digest
        cold = not mark.exists()
        mark.mkdir(parents=True, exist_ok=True)
        reading = self._gauge.read()
        self.telemetry.record(
            "load",
            digest=model.digest,
            bits_per_weight=model.bits_per_weight,
            compute_units="none",
            plan=list(model.compute_plan),
            cold=cold,
            ms=(self._clock.now_ns() - started_ns) / 1e6,
            phase="loaded",
            reason="launch",
            weights_bytes=model.weights_bytes,
            footprint=reading.footprint,
            host_bytes=reading.host_bytes,
        )

    def run(self) -> str:
        """Play turns until the soak is over, say `bye`, and return its reason."""
        conversation, number, barren = 1, 0, 0
        while self._pressure.stop_reason is None and barren < MOST_BARREN_TURNS:
            number += 1
            if number > self._plan.scenario.prompts.turns_per_conversation:
                self.pipeline.end_conversation()
                conversation, number = conversation + 1, 1
            barren = 0 if self._turn(conversation, number) else barren + 1
            self._pause()
        if self._pressure.stop_reason is None:
            message = f"{barren} turns in a row gave no token"
            self.telemetry.fault("barren", message, self.pipeline.phase)
        reason = self._pressure.stop_reason or "fault"
        self.pipeline.end_conversation()
        self._sampler.close()
        self.telemetry.bye(reason)
        return reason

    def _pause(self) -> None:
        """Answer warnings between two turns, and predict nothing, for the scenario's time."""
        until_ns = self._clock.now_ns() + self._plan.scenario.pause_ms * _NS_PER_MS
        while self._pressure.stop_reason is None and self._clock.now_ns() < until_ns:
            self.pipeline.settle()
            self._end_if_due()
            self._clock.sleep_until_ns(min(until_ns, self._clock.now_ns() + _PAUSE_STEP_NS))

    def _turn(self, conversation: int, number: int) -> int:
        """Play one scheduled turn and return how many tokens it gave."""
        scenario, model = self._plan.scenario, self._plan.model
        prompt = prompt_ids(
            scenario.seed,
            conversation,
            number,
            length_range=(scenario.prompts.min_ids, scenario.prompts.max_ids),
            id_range=(model.first_id, model.vocab),
            bos_id=model.bos_id,
        )
        self._view = TurnView()
        reason = self.pipeline.turn(Turn(conversation, number, prompt, scenario.prompts.turn_limit))
        self.telemetry.turn_ended(reason, self.pipeline.generated, self._view)
        return self.pipeline.generated

    def after_sample(self, token: int) -> None:
        """Act on the ordinal of the token that was just recorded."""
        self._view.show(token)
        ordinal = self.telemetry.totals.tokens
        grew = [source.after_token(ordinal) for source in self._growths]
        if any(grew):
            self._sampler.sample_if_moved()
        if ordinal in self._warning_tokens:
            self.warn("synthetic")
        if ordinal == self._plan.scenario.stop_after_tokens:
            self._pressure.stop("completed")
        self._end_if_due()

    def after_eviction(self) -> None:
        """Give the ballast back."""
        for ballast in self._ballasts:
            ballast.release()

    def memory_is_low(self) -> bool:
        """Return whether available memory is known and under the headroom."""
        policy, limit_bytes = self._plan.scenario.policy, self._gauge.limit_bytes
        if not policy.low_memory_trim or limit_bytes is None:
            return False
        return self._gauge.read().available * 100 < limit_bytes * policy.headroom_percent

    def warn(self, origin: str) -> None:
        """Take a memory warning."""
        self._pressure.warn(lambda: self.telemetry.memory_warning(origin))

    def enter(self, *, foreground: bool) -> None:
        """Take the app's move to the foreground or background."""
        event = "foreground" if foreground else "background"
        self._pressure.set_foreground(
            foreground,
            lambda: self.telemetry.record(
                "lifecycle", event=event, phase=self.pipeline.phase, origin="phone"
            ),
        )

    def _end_if_due(self) -> None:
        first_ns = self.telemetry.first_prediction_ns
        if first_ns is None:
            return
        if self._clock.now_ns() - first_ns >= self._plan.scenario.duration_s * NS_PER_S:
            self._pressure.stop("completed")

    def _sample_facts(self) -> dict[str, object]:
        held_bytes = sum(source.host_bytes for source in self._growths)
        return {
            "kv": self.telemetry.kv_bytes,
            "ballast": held_bytes * self._gauge.scale,
            "weights": self._engine.weights_bytes,
            "n": self.pipeline.row_count,
            "thermal": self._conditions.thermal,
            "battery_percent": self._conditions.battery_percent,
            "charging": self._conditions.charging,
            "low_power": self._conditions.low_power,
            "foreground": self._pressure.foreground,
            "tokens_total": self.telemetry.totals.tokens,
        }
