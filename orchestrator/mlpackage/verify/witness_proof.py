"""Executes witness packages: do the rows that come back prove the context that went in?"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from orchestrator.domain.mixing import mix, probe_rows
from orchestrator.mlpackage.build.chunks import DECODE, PREFILL, Part
from orchestrator.mlpackage.build.recipe import PART_KEY
from orchestrator.mlpackage.build.witness import (
    BASE,
    DIGITS,
    PROBES,
    WITNESS_KEY,
    WitnessRecipe,
)
from orchestrator.mlpackage.verify.errors import VerifyError, WrongGraphError
from orchestrator.mlpackage.verify.feeds import padded
from orchestrator.mlpackage.verify.interpreter import Interpreter
from orchestrator.mlpackage.verify.report import MutationResult, WitnessReport

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from orchestrator.mlpackage.package import Package
    from orchestrator.mlpackage.verify.tensors import Array

_MASK: Final = (1 << 64) - 1
_LENGTHS: Final = (1, 8, 64, 65, 200)
_STALE: Final = 3.0  # what a recycled state holds everywhere: digits of an id, but of none fed


@dataclass(frozen=True, slots=True)
class Case:
    """A context and the token that it must give (docs/contract.md, Proof of context)."""

    context: tuple[int, ...]
    nonce: int
    vocab: int
    first_id: int
    end_id: int
    end_every: int
    token: int

    def sampled(self, rows: Sequence[int], ids: Sequence[int]) -> int:
        """Return the token that ids read back from rows give."""
        digest = self.nonce & _MASK
        for row, token in zip(rows, ids, strict=True):
            digest = mix((digest ^ token ^ (row << 32)) & _MASK)
        if self.end_every and digest % self.end_every == 0:
            return self.end_id
        return self.first_id + digest % (self.vocab - self.first_id)


@dataclass(frozen=True, slots=True)
class Witness:
    """The packages of a witness, by role."""

    recipe: WitnessRecipe
    functions: dict[str, Interpreter]

    def read_back(self, case: Case, *, lose_row: int | None = None) -> tuple[list[int], Array]:
        """Feed a context and return the probed rows and what the states hold there.

        Args:
            case: The context and its nonce.
            lose_row: Overwrite this row before the last prediction, as a wrong trim would.

        Returns:
            Row numbers, and [8, 64] as the graph gave it.
        """
        rows = probe_rows(len(case.context), case.nonce)
        onehot = np.zeros((PROBES, self.recipe.length), np.float16)
        onehot[np.arange(PROBES), rows] = 1
        state = next(iter(self.functions.values())).make_state()
        for array in state.values():
            array[...] = _STALE
        steps = self.steps(len(case.context))
        out: Array = np.zeros((PROBES, 0), np.float16)
        for role, start, count in steps:
            if lose_row is not None and start + count == len(case.context):
                state["k_cache"][0, 0, lose_row] = _STALE
            width = self.recipe.chunk if role == PREFILL else 1
            ids = np.array(case.context[start : start + count], np.int32)
            inputs = {
                "input_ids": padded(ids, width),
                "position_ids": np.arange(start, start + width, dtype=np.int32),
                "probe_onehot": onehot,
            }
            outputs = self.functions[role].predict(inputs, state)
            out = outputs.get("probed_rows", out)
        return list(rows), out

    def steps(self, tokens: int) -> list[tuple[str, int, int]]:
        """Return role, start and count of the predictions that feed a context."""
        steps, start, chunk = [], 0, self.recipe.chunk
        while start < tokens:
            fits = start + chunk <= self.recipe.length
            if DECODE not in self.functions and not fits:
                raise VerifyError(f"a context of {tokens} ids does not fit chunks of {chunk}")
            role = PREFILL if PREFILL in self.functions and fits else DECODE
            count = min(chunk, tokens - start) if role == PREFILL else 1
            steps.append((role, start, count))
            start += count
        return steps


def verify_witness(packages: Sequence[Package], vectors: Path | None) -> WitnessReport:
    """Return whether witness packages prove every context.

    Args:
        packages: Of one witness.
        vectors: A file of cases, as `tests/vectors/witness_vectors.json`; drawn where it is None.

    Raises:
        VerifyError: If the packages are not of one witness, or the file holds no cases.
    """
    witness = _witness(packages)
    cases = _drawn(witness.recipe) if vectors is None else _read(vectors, witness.recipe)
    findings = [
        f"context {number} of {len(cases)} with {len(case.context)} ids: {fault}"
        for number, case in enumerate(cases, 1)
        if (fault := _fault(witness, case))
    ]
    mutation = _lost_row(witness, cases)
    if not mutation.noticed:
        findings.append(f"the mutation {mutation.name!r} was not noticed")
    return WitnessReport(
        packages=tuple(package.path.name for package in packages),
        roles=tuple(witness.functions),
        contexts=len(cases),
        proven=sum(not _fault(witness, case) for case in cases) if findings else len(cases),
        mutations=(mutation,),
        findings=tuple(findings),
    )


def ids_in(out: Array) -> list[int] | None:
    """Return the ids that probed rows hold, None where the two states disagree."""
    half = out.shape[1] // 2
    digits, inverted = out[:, :DIGITS], out[:, half : half + DIGITS]
    if not np.array_equal(digits + inverted, np.full_like(digits, BASE - 1)):
        return None
    return [int(row @ BASE ** np.arange(DIGITS)) for row in digits.astype(np.int64)]


def _fault(witness: Witness, case: Case) -> str:
    """Return why a context is not proven, or an empty text."""
    rows, out = witness.read_back(case)
    ids = ids_in(out)
    if ids is None:
        return "k_cache and v_cache hold different ids"
    if ids != [case.context[row] for row in rows]:
        return f"rows {rows} hold {ids}"
    token = case.sampled(rows, ids)
    return "" if token == case.token else f"token {token}, not {case.token}"


def _lost_row(witness: Witness, cases: Sequence[Case]) -> MutationResult:
    """Lose one probed row of the longest context: its token must change."""
    case = max(cases, key=lambda case: len(case.context))
    last_fed = witness.steps(len(case.context))[-1][1]
    earlier = [row for row in probe_rows(len(case.context), case.nonce) if row < last_fed]
    if not earlier:
        return MutationResult("a lost row", noticed=True, how="no context is longer than a chunk")
    rows, out = witness.read_back(case, lose_row=earlier[0])
    ids = ids_in(out)
    noticed = ids is None or case.sampled(rows, ids) != case.token
    return MutationResult("a lost row", noticed, "the rows no longer give the token")


def _witness(packages: Sequence[Package]) -> Witness:
    texts = {package.model.metadata[WITNESS_KEY] for package in packages}
    if len(texts) != 1:
        raise VerifyError("packages of different witnesses")
    functions = {}
    for package in packages:
        roles = Part.from_json(package.model.metadata.get(PART_KEY, "")).functions
        for role in roles:
            functions[role] = Interpreter(package, role if len(roles) > 1 else None)
    recipe = WitnessRecipe.from_json(texts.pop())
    for run in functions.values():
        if any(array.shape[2:3] != (recipe.length,) for array in run.make_state().values()):
            raise WrongGraphError(f"{run.path}: the states do not have {recipe.length} rows")
    return Witness(recipe, functions)


def _drawn(recipe: WitnessRecipe) -> list[Case]:
    draws = random.Random(7)  # noqa: S311 - contexts for a test, no secret
    cases = []
    for length in (*_LENGTHS, recipe.length):
        context = tuple(draws.randrange(recipe.vocab) for _ in range(min(length, recipe.length)))
        case = Case(context, draws.getrandbits(64), recipe.vocab, 2, 0, 0, token=0)
        rows = list(probe_rows(len(context), case.nonce))
        token = case.sampled(rows, [context[row] for row in rows])
        cases.append(Case(context, case.nonce, recipe.vocab, 2, 0, 0, token))
    return cases


def _read(vectors: Path, recipe: WitnessRecipe) -> list[Case]:
    try:
        entries: list[dict[str, Any]] = json.loads(vectors.read_text(encoding="utf-8"))
        cases = [_case(entry) for entry in entries]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise VerifyError(f"{vectors}: no witness vectors: {error}") from error
    fits = [
        0 < len(case.context) <= recipe.length and max(case.context) < recipe.vocab
        for case in cases
    ]
    if not cases or not all(fits):
        raise VerifyError(f"{vectors}: a context does not fit the model")
    return cases


def _case(entry: dict[str, Any]) -> Case:
    return Case(
        context=tuple(int(token) for token in entry["context"]),
        nonce=int(entry["nonce"], 16),
        vocab=int(entry["vocab"]),
        first_id=int(entry["first_id"]),
        end_id=int(entry["end_id"]),
        end_every=int(entry["end_every"]),
        token=int(entry["token"]),
    )
