"""What a soak's records prove, computed by the tests' own sums."""

from __future__ import annotations

from orchestrator.domain.mixing import mix
from tests.harness.standin_process import NONCE, Record

MASK = (1 << 64) - 1


def of_kind(records: list[Record], *kinds: str) -> list[Record]:
    return [record for record in records if record["kind"] in kinds]


def expected_token(rows: list[int], hello: Record) -> int:
    """The proof of context, written from its text."""
    digest, count = NONCE, len(rows)
    for probe in range(8):
        row = mix((NONCE ^ (count << 8) ^ probe) & MASK) % count
        digest = mix((digest ^ rows[row] ^ (row << 32)) & MASK)
    if hello["end_every"] and digest % hello["end_every"] == 0:
        return int(hello["end_ids"][0])
    return int(hello["first_id"] + digest % (hello["vocab"] - hello["first_id"]))


def wrong_tokens(records: list[Record]) -> int:
    """How many tokens are not what the rows that the records claim would give."""
    hello, pending, wrong = records[0], None, 0
    rows: list[int] = []
    for record in records:
        match record["kind"]:
            case "state":
                rows = []
            case "prefill":
                assert record["start"] == len(rows)
                rows = rows + record["ids"]
                # A trim or a resume in decode leaves the token that is fed next.
                pending = None if record["purpose"] == "turn" else pending
            case "tokens":
                for token, count in zip(record["ids"], record["n"], strict=True):
                    if pending is not None:
                        rows = [*rows, pending]
                    assert count == len(rows)
                    wrong += token != expected_token(rows, hello)
                    pending = token
    return wrong
