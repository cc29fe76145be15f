"""The `start` command: from its JSON to everything a soak needs, or the field that is wrong."""

from __future__ import annotations

import string
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from orchestrator.harness.standin.fields import FieldError, Fields
from orchestrator.harness.standin.journal import MOST_LINE_BYTES
from orchestrator.harness.standin.packages import WitnessModel, load_model, read_refs
from orchestrator.harness.standin.planning import (
    BudgetInputs,
    choose_quantization,
    pin_ids,
    plan_budget,
)
from orchestrator.harness.standin.scenario import Scenario, read_scenario

if TYPE_CHECKING:
    from orchestrator.harness.standin.identity import Launch

_NONCE_DIGITS: Final = 16
_RECORD_ROOM: Final = 1024  # bytes of a `turn_start` beside its ids


@dataclass(frozen=True, slots=True)
class SoakPlan:
    """One soak, decided."""

    run_id: str
    nonce: int  # 64 bit
    scenario: Scenario
    model: WitnessModel
    budget_inputs: BudgetInputs
    pin_ids: list[int]

    @property
    def budget(self) -> int:
        """B, the most rows at any prediction."""
        return self.budget_inputs.budget


def read_start(command: Fields, launch: Launch) -> SoakPlan:
    """Return the plan that a `start` command asks for on this phone.

    Raises:
        FieldError: If the command cannot be read, a package is wrong, or the phone is too small.
    """
    scenario = read_scenario(command.child("scenario"))
    memory_class = launch.defect.memory_class(launch.physical_memory_bytes)
    if memory_class is None:
        raise FieldError(f"a phone of {launch.physical_memory_bytes} bytes is too small")
    quantization = choose_quantization(memory_class)
    refs = {ref.quantization: ref for ref in read_refs(command)}
    if quantization not in refs:
        raise FieldError(f"packages has no {quantization}")
    model = load_model(launch.container, refs[quantization])
    _require_room(scenario, model)
    return SoakPlan(
        run_id=command.text("run_id"),
        nonce=_nonce(command.text("nonce")),
        scenario=scenario,
        model=model,
        budget_inputs=plan_budget(memory_class, scenario.policy, model),
        pin_ids=pin_ids(scenario.policy, model),
    )


def _nonce(text: str) -> int:
    if len(text) != _NONCE_DIGITS or not set(text) <= set(string.hexdigits):
        raise FieldError(f"nonce must be {_NONCE_DIGITS} hex digits")
    return int(text, 16)


def _require_room(scenario: Scenario, model: WitnessModel) -> None:
    """Refuse prompts whose ids, full and used, would not fit one record."""
    id_bytes = len(str(model.vocab)) + 1
    if 2 * (scenario.prompts.max_ids + 1) * id_bytes + _RECORD_ROOM > MOST_LINE_BYTES:
        raise FieldError(f"prompts of {scenario.prompts.max_ids} ids do not fit a record")
