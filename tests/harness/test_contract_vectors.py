"""The stand-in keeps the contract on every vector that the Swift app and the predictor replay."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.harness.standin.context import ContextWindow
from orchestrator.harness.standin.engine import KVRows, witness_token
from orchestrator.harness.standin.packages import WitnessModel
from tests.harness.scripted import Operation, Talk

VECTORS = Path(__file__).resolve().parents[1] / "vectors"
CONTRACT: list[dict[str, Any]] = json.loads((VECTORS / "contract_vectors.json").read_bytes())
WITNESS: list[dict[str, Any]] = json.loads((VECTORS / "witness_vectors.json").read_bytes())

FACTS = {
    "make": ("state",),
    "predict": ("purpose", "ids", "n"),
    "sample": ("id", "n"),
    "trim": ("before", "kept"),
    "evict": ("before",),
    "drop": ("state",),
}


def trace_of(operations: list[Operation], reason: str) -> list[Operation]:
    trace = [
        {"op": operation["op"], **{fact: operation[fact] for fact in FACTS[operation["op"]]}}
        for operation in operations
        if operation["op"] in FACTS
    ]
    last = {"op": "refused"} if reason == "refused" else {"op": "end", "reason": reason}
    return [*trace, last]


def without_asked_tokens(expected: list[Operation]) -> list[Operation]:
    """The vector's trace; how much a refused turn asked for is in no record of the app."""
    return [
        {"op": "refused"} if operation["op"] == "refused" else operation for operation in expected
    ]


@pytest.mark.parametrize("vector", CONTRACT, ids=lambda vector: vector["name"])
def test_the_pipeline_does_what_the_vector_says(vector: dict[str, Any]) -> None:
    talk = Talk(
        vector["budget"], pin=vector["pin"], chunk=vector["chunk"], end_ids=vector["end_ids"]
    )
    for turn, expected in zip(vector["turns"], vector["expect"], strict=True):
        during = dict.fromkeys(turn["warnings"], talk.warn)
        reason = talk.turn(turn["prompt"], turn["sampled"], limit=turn["limit"], during=during)
        assert trace_of(talk.script.operations, reason) == without_asked_tokens(expected)


def test_every_trim_and_every_eviction_of_the_vectors_gets_one_notice() -> None:
    for vector in CONTRACT:
        talk = Talk(vector["budget"], pin=vector["pin"], chunk=vector["chunk"])
        for turn in vector["turns"]:
            during = dict.fromkeys(turn["warnings"], talk.warn)
            talk.turn(turn["prompt"], turn["sampled"], limit=turn["limit"], during=during)
            script = talk.script
            noticed = sorted(notice["for_seq"] for notice in script.named("notice"))
            cuts = [
                place
                for place, operation in enumerate(script.operations, 1)
                if operation["op"] in ("trim", "evict")
            ]
            assert noticed == cuts


@pytest.mark.parametrize("vector", WITNESS, ids=lambda vector: vector["nonce"])
def test_the_witness_token_is_computed_from_rows_in_memory(vector: dict[str, Any]) -> None:
    context: list[int] = vector["context"]
    model = WitnessModel(
        "",
        "int4",
        4,
        0,
        64,
        len(context),
        vector["vocab"],
        vector["first_id"],
        vector["end_id"],
        1,
        64,
    )
    rows = KVRows(len(context), 64)
    for row, token in enumerate(context):
        rows.write(row, token)
    nonce = int(vector["nonce"], 16)
    token = witness_token(rows, len(context), nonce, model, vector["end_every"])
    rows.release()
    assert token == vector["token"]


def test_a_pin_over_a_quarter_of_the_budget_is_refused() -> None:
    with pytest.raises(ValueError, match="pin 3 is over a quarter of the budget 8"):
        ContextWindow(8, 3)
