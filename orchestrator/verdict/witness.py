"""The token that a witness engine samples: a public function of the rows its KV memory holds.

The host computes it from its own predicted context, so that a stale row, a lost count or a wrong
tail shows as a wrong token even where every record lies (docs/contract.md, Proof of context).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from orchestrator.domain.mixing import mix, probe_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

_MASK: Final = (1 << 64) - 1


@lru_cache(maxsize=2048)  # a window goes through the same counts again and again
def _probed(row_count: int, nonce: int) -> tuple[int, ...]:
    return tuple(probe_rows(row_count, nonce))


@dataclass(frozen=True, slots=True)
class Witness:
    """What ties rows to tokens.

    Raises:
        ValueError: If no id lies between `first_id` and `vocab`, or `end_every` is negative.
    """

    nonce: int  # 64 bit, drawn by the host for the launch
    vocab: int
    first_id: int
    end_id: int
    end_every: int  # E of the contract; 0 is never

    def __post_init__(self) -> None:
        if self.vocab <= self.first_id or self.end_every < 0:
            raise ValueError(
                f"no token lies between first_id {self.first_id} and vocab {self.vocab},"
                f" or end_every {self.end_every} is negative"
            )

    def token(self, rows: Sequence[int]) -> int:
        """Return the token of a context.

        Args:
            rows: Ids of the KV rows, shape (n,), n at least 1.
        """
        digest = self.nonce & _MASK
        for row in _probed(len(rows), self.nonce):
            digest = mix((digest ^ rows[row] ^ (row << 32)) & _MASK)
        if self.end_every and digest % self.end_every == 0:
            return self.end_id
        return self.first_id + digest % (self.vocab - self.first_id)
