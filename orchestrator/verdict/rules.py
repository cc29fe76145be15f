"""The rules of one launch: what the plan fixed and what the app's `hello` adds to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.domain.mixing import prompt_ids
from orchestrator.verdict.window import MAX_ROWS
from orchestrator.verdict.witness import Witness

if TYPE_CHECKING:
    from orchestrator.runlog.documents import PlannedPhone
    from orchestrator.runlog.telemetry import Hello
    from orchestrator.verdict.scenario import Scenario


class ImpossibleRulesError(ValueError):
    """A `hello` states values that no launch can have."""


@dataclass(frozen=True, slots=True)
class LaunchRules:
    """Everything a launch is predicted from.

    The budget is the one the app declares: `budget.matches-device` judges whether it is the right
    one, and a schedule for another budget would report that one mistake at every trim again.
    """

    scenario: Scenario
    budget: int
    pin: int
    chunk: int
    end_ids: frozenset[int]
    first_id: int
    vocab: int
    bos_id: int | None
    witness: Witness | None  # None for engines whose tokens prove nothing

    def scheduled_prompt(self, conversation: int, turn: int) -> list[int]:
        """Return the prompt that the scenario schedules."""
        prompts = self.scenario.prompts
        return prompt_ids(
            self.scenario.seed,
            conversation,
            turn,
            length_range=(prompts.min_ids, prompts.max_ids),
            id_range=(self.first_id, self.vocab),
            bos_id=self.bos_id,
        )

    def next_turn(self, conversation: int, turn: int) -> tuple[int, int]:
        """Return the conversation and turn that follow; before the first both are 0."""
        if conversation and turn < self.scenario.prompts.turns_per_conversation:
            return conversation, turn + 1
        return conversation + 1, 1


def launch_rules(hello: Hello, phone: PlannedPhone, scenario: Scenario) -> LaunchRules:
    """Return the rules of a launch.

    Raises:
        ImpossibleRulesError: With what is impossible about them.
    """
    if not 1 <= hello.budget <= MAX_ROWS or hello.chunk < 1 or hello.vocab <= hello.first_id:
        raise ImpossibleRulesError(
            f"hello states budget {hello.budget}, chunk {hello.chunk}, vocab {hello.vocab}"
            f" and first id {hello.first_id}"
        )
    if len(hello.pin_ids) != phone.expected.pin_tokens:
        raise ImpossibleRulesError(
            f"hello states a pin of {len(hello.pin_ids)} ids, the plan has"
            f" {phone.expected.pin_tokens}"
        )
    return LaunchRules(
        scenario=scenario,
        budget=hello.budget,
        pin=phone.expected.pin_tokens,
        chunk=hello.chunk,
        end_ids=frozenset(hello.end_ids),
        first_id=hello.first_id,
        vocab=hello.vocab,
        bos_id=hello.bos_id,
        witness=_witness(hello, phone, scenario),
    )


def _witness(hello: Hello, phone: PlannedPhone, scenario: Scenario) -> Witness | None:
    """The nonce and E are the host's own, never the app's."""
    if hello.engine != "witness" or (scenario.end_every and not hello.end_ids):
        return None
    try:
        nonce = int(phone.nonce, 16)
    except ValueError:
        return None
    return Witness(
        nonce=nonce,
        vocab=hello.vocab,
        first_id=hello.first_id,
        end_id=hello.end_ids[0] if hello.end_ids else -1,
        end_every=scenario.end_every,
    )
