"""Decides budget and quantization of a launch from the phone's memory.

See the contract, R6 and memory rules. Pure: no I/O.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.domain.memory_class import MemoryClass
from orchestrator.harness.standin.fields import FieldError

if TYPE_CHECKING:
    from orchestrator.harness.standin.packages import WitnessModel
    from orchestrator.harness.standin.scenario import Policy


@dataclass(frozen=True, slots=True)
class BudgetInputs:
    """What the token budget was decided from."""

    memory_class: MemoryClass
    policy_tokens: int
    model_capacity: int
    scenario_tokens: int | None
    kv_ceiling_tokens: int | None

    @property
    def budget(self) -> int:
        """B, the most rows at any prediction: the lowest of the inputs."""
        bounds = (
            self.policy_tokens,
            self.model_capacity,
            self.scenario_tokens,
            self.kv_ceiling_tokens,
        )
        return min(bound for bound in bounds if bound is not None)


def choose_quantization(memory_class: MemoryClass) -> str:
    """Return `int8` from the 8 GB class up, else `int4`."""
    return "int4" if memory_class is MemoryClass.GB6 else "int8"


def plan_budget(memory_class: MemoryClass, policy: Policy, model: WitnessModel) -> BudgetInputs:
    """Return the inputs of the token budget.

    Raises:
        FieldError: If the policy has no budget for the class, or the pin is over a quarter of the
            budget (R6).
    """
    if memory_class not in policy.budget_tokens:
        raise FieldError(f"scenario.policy.budget_tokens has no {memory_class}")
    inputs = BudgetInputs(
        memory_class,
        policy.budget_tokens[memory_class],
        model.capacity,
        policy.scenario_budget_tokens,
        policy.kv_ceiling_tokens,
    )
    pin_count = len(pin_ids(policy, model))
    if pin_count > inputs.budget // 4:
        raise FieldError(f"a pin of {pin_count} is over a quarter of the budget {inputs.budget}")
    return inputs


def pin_ids(policy: Policy, model: WitnessModel) -> list[int]:
    """Return the ids of the pinned prefix."""
    return [] if policy.pin == "none" or model.bos_id is None else [model.bos_id]
