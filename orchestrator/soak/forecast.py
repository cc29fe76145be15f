"""What the contract's predictor expects of a soak before it begins. Pure.

The host knows the prompts, the nonce and the witness's function: so it knows the tokens, and with
them every trim. What it cannot know is when the kernel warns: an eviction is assumed at the end of
each ramp of ballast, and the forecast says up to which token it is exact.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from orchestrator.domain.mixing import prompt_ids
from orchestrator.verdict.window import ContextWindow
from orchestrator.verdict.witness import Witness

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.config.workload import Scenario

MOST_TOKENS: Final = 10_000  # simulated: some tenths of a second for each phone


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Ids of the model that will run."""

    first_id: int
    vocab: int
    end_id: int
    bos_id: int | None


@dataclass(slots=True)
class Forecast:
    """What is expected of one phone.

    Attributes:
        trims: For each trim, how many tokens were sampled before it.
        tokens: Samples that were simulated.
        evictions: Those by the scenario's own warnings, and those assumed at ramps.
        exact_until: Tokens up to which nothing was assumed; None for all of them.
        whole: Whether the soak ends within what was simulated.
    """

    trims: list[int] = field(default_factory=list)
    tokens: int = 0
    turns: int = 0
    refused: int = 0
    evictions: int = 0
    exact_until: int | None = None
    whole: bool = False


def forecast(
    scenario: Scenario, seed: int, nonce: str, budget: int, pin: int, words: Vocabulary
) -> Forecast:
    """Return what the contract predicts for one phone, for at most `MOST_TOKENS` tokens.

    Args:
        scenario: With the configuration's overrides.
        seed: Of the run.
        nonce: The phone's, 16 hex digits.
        budget: Tokens.
        pin: Ids at the front that every trim keeps.
        words: Of the model.
    """
    return _Simulation(scenario, seed, nonce, ContextWindow(budget, pin), words).run()


class _Simulation:
    def __init__(
        self,
        scenario: Scenario,
        seed: int,
        nonce: str,
        window: ContextWindow,
        words: Vocabulary,
    ) -> None:
        self._scenario, self._seed, self._window, self._words = scenario, seed, window, words
        self._witness = Witness(
            int(nonce, 16), words.vocab, words.first_id, words.end_id, scenario.end_every
        )
        self._spent_s = 0.0
        self._seen = Forecast()
        ramps = [ramp.to_token for ramp in scenario.ballast]
        self._evict_at = {
            *scenario.warn_at_tokens,
            *ramps,
            *(visit.at_token for visit in scenario.background),
            *(at.at_token for at in scenario.timed_warnings if at.phase == "decode"),
        }
        self._waiting = sorted(
            (at.at_token, at.phase) for at in scenario.timed_warnings if at.phase != "decode"
        )
        starts = [ramp.from_token for ramp in scenario.ballast]
        self._seen.exact_until = min(starts) if starts else None

    @property
    def _over(self) -> bool:
        stop = self._scenario.stop_after_tokens
        self._seen.whole = self._spent_s >= self._scenario.duration_s or (
            stop is not None and self._seen.tokens >= stop
        )
        return self._seen.whole or self._seen.tokens >= MOST_TOKENS

    def run(self) -> Forecast:
        conversation, turn, barren = 1, 1, 0
        while not self._over and barren < self._scenario.turns_per_conversation:
            before = self._seen.tokens
            self._turn(conversation, turn)
            barren = 0 if self._seen.tokens > before else barren + 1
            self._answer("idle")
            turn += 1
            if turn > self._scenario.turns_per_conversation:
                conversation, turn = conversation + 1, 1
                self._window.start_conversation()
        return self._seen

    def _turn(self, conversation: int, turn: int) -> None:
        scenario, words = self._scenario, self._words
        prompt = prompt_ids(
            self._seed,
            conversation,
            turn,
            length_range=(scenario.min_prompt_ids, scenario.max_prompt_ids),
            id_range=(words.first_id, words.vocab),
            bos_id=words.bos_id,
        )
        opening = self._window.opening(prompt)
        self._seen.turns += 1
        if opening.refused:
            self._seen.refused += 1
            return
        self._window.open(opening.used_ids)
        self._make_room(len(opening.used_ids))
        self._feed(self._window.ingest_ids())
        if self._answer("prefill"):
            self._feed(self._window.ingest_ids())
        self._generate()

    def _generate(self) -> None:
        for count in range(1, self._scenario.turn_limit_tokens + 1):
            token = self._witness.token(self._window.rows)
            self._seen.tokens += 1
            if self._seen.tokens in self._evict_at:
                self._evict()
            ended = token == self._words.end_id and self._scenario.end_every > 0
            if ended or count == self._scenario.turn_limit_tokens or self._over:
                self._window.pending = [token]
                return
            self._make_room(1)
            if not self._window.rows:
                self._feed(self._window.resume_ids())
            self._window.feed([token])
            self._window.accept(token)
            self._spent_s += 1 / self._scenario.decode_tokens_per_s

    def _make_room(self, k: int) -> None:
        if not self._window.overflows(k):
            return
        plan = self._window.trim_plan(k)
        self._seen.trims.append(self._seen.tokens)
        self._window.release()
        self._feed(plan.kept_ids)

    def _feed(self, ids: Sequence[int]) -> None:
        self._window.feed(ids)
        self._spent_s += len(ids) / self._scenario.prefill_tokens_per_s

    def _answer(self, phase: str) -> bool:
        """Evict for a warning that waited for this phase."""
        due = [at for at in self._waiting if at[0] <= self._seen.tokens and at[1] == phase]
        if not due:
            return False
        self._waiting = [at for at in self._waiting if at not in due]
        self._evict()
        return True

    def _evict(self) -> None:
        if self._window.rows:
            self._seen.evictions += 1
            self._window.release()
