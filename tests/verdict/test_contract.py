"""The predictor answers the shared vectors, and refuses files of another shape by place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.domain.errors import UsageError
from orchestrator.verdict.contract import answer_contract, answer_witness
from orchestrator.verdict.window import ContextWindow

VECTORS = Path(__file__).parents[1] / "vectors"
CONTRACT: list[dict[str, Any]] = json.loads((VECTORS / "contract_vectors.json").read_text())
WITNESS: list[dict[str, Any]] = json.loads((VECTORS / "witness_vectors.json").read_text())


@pytest.mark.parametrize("vector", CONTRACT, ids=[vector["name"] for vector in CONTRACT])
def test_the_operations_of_a_vector(vector: dict[str, Any]) -> None:
    assert answer_contract([vector]) == [vector["expect"]]


def test_the_tokens_of_the_witness_vectors() -> None:
    assert answer_witness(WITNESS) == [vector["token"] for vector in WITNESS]


def test_what_a_file_expects_is_never_read() -> None:
    lying = [{**vector, "expect": "anything"} for vector in CONTRACT]
    assert answer_contract(lying) == [vector["expect"] for vector in CONTRACT]
    blank = [{key: value for key, value in vector.items() if key != "token"} for vector in WITNESS]
    assert answer_witness(blank) == [vector["token"] for vector in WITNESS]


def broken(path: list[str | int], value: object, of: list[dict[str, Any]]) -> list[Any]:
    document = json.loads(json.dumps(of[:2]))
    target = document
    for step in path[:-1]:
        target = target[step]
    target[path[-1]] = value
    return document  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("path", "value", "place"),
    [
        ([1, "budget"], "64", "$[1].budget"),
        ([1, "budget"], 0, "$[1].budget"),
        ([0, "chunk"], 0, "$[0].chunk"),
        ([0, "turns", 0, "prompt", 2], 1.5, "$[0].turns[0].prompt[2]"),
        ([0, "turns", 0, "sampled"], None, "$[0].turns[0].sampled"),
        ([0, "end_ids"], {}, "$[0].end_ids"),
        ([1, "pin"], 99, "$[1].pin"),
    ],
)
def test_a_wrong_shape_names_its_place(path: list[str | int], value: object, place: str) -> None:
    with pytest.raises(UsageError, match="vector file") as caught:
        answer_contract(broken(path, value, CONTRACT))
    assert place in str(caught.value)


@pytest.mark.parametrize(
    ("path", "value", "place"),
    [
        ([0, "context"], [], "$[0].context"),
        ([1, "nonce"], "xyz", "$[1].nonce"),
        ([1, "vocab"], 1, "$[1].vocab"),
        ([0, "end_every"], -1, "$[0].end_every"),
    ],
)
def test_a_wrong_witness_names_its_place(path: list[str | int], value: object, place: str) -> None:
    with pytest.raises(UsageError, match="vector file") as caught:
        answer_witness(broken(path, value, WITNESS))
    assert place in str(caught.value)


@pytest.mark.parametrize("document", [None, {}, "text", [1], [[]], [{}]])
def test_documents_that_hold_no_vectors_are_refused(document: object) -> None:
    with pytest.raises(UsageError):
        answer_contract(document)
    with pytest.raises(UsageError):
        answer_witness(document)


def test_a_pin_over_a_quarter_of_the_budget_is_refused() -> None:
    with pytest.raises(ValueError, match="R6"):
        ContextWindow(16, 5)


def test_a_truncated_prompt_keeps_the_pin_and_the_newest_ids() -> None:
    window = ContextWindow(8, 1)
    opening = window.opening(list(range(1, 13)), truncate=True)
    assert opening.used_ids == [1, 6, 7, 8, 9, 10, 11, 12]
    assert (opening.offered, opening.refused) == (12, False)
