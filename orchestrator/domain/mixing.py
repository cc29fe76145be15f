"""SplitMix64 and what the lab draws from it: witness tokens and prompt ids.

One public function ties phone and host to the same numbers without sending them.
"""

from __future__ import annotations

from typing import Final

_MASK: Final = (1 << 64) - 1
_PROBES: Final = 8
_SPLIT_CHARACTERS: Final = tuple(character.encode() for character in "é€😀")


def mix(x: int) -> int:
    """Return SplitMix64's output function of `x` modulo 2**64.

    Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
    """
    x = (x + 0x9E3779B97F4A7C15) & _MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return x ^ (x >> 31)


def probe_rows(row_count: int, nonce: int) -> list[int]:
    """Return the 8 KV rows, shape (8,), that a witness reads back when it holds `row_count`."""
    return [mix((nonce ^ (row_count << 8) ^ probe) & _MASK) % row_count for probe in range(_PROBES)]


def prompt_ids(  # the scheduled prompt is a public function, so the host knows what was sent
    seed: int,
    conversation: int,
    turn: int,
    *,
    length_range: tuple[int, int],
    id_range: tuple[int, int],
    bos_id: int | None,
) -> list[int]:
    """Return the ids of one scheduled prompt.

    Args:
        seed: The run's seed, 64 bit.
        conversation: Ordinal of the conversation within the launch, from 1.
        turn: Ordinal of the turn within the conversation, from 1.
        length_range: Fewest and most ids, both included, the beginning-of-sequence id counted.
        id_range: First id and one past the last id that a prompt may hold.
        bos_id: Put in front of a conversation's first prompt; None for models without one.
    """
    low, high = length_range
    stem = mix((seed ^ (conversation << 40) ^ (turn << 20)) & _MASK)
    length = low + stem % (high - low + 1)
    first, end = id_range
    ids = [first + mix(stem ^ (place + 1)) % (end - first) for place in range(length)]
    if bos_id is not None and turn == 1:
        ids[0] = bos_id
    return ids


def text_piece(token: int, place: int) -> bytes:
    """Return the bytes that a token gives where the text is `pieces` (docs/protocol.md, 3.1).

    Pieces join to valid UTF-8 whatever the tokens are, and every second one ends in a character.

    Args:
        token: The id that was sampled.
        place: Number of the sample within its turn, from 0, the end token counted.
    """
    character = _SPLIT_CHARACTERS[place // 2 % len(_SPLIT_CHARACTERS)]
    letter = bytes([ord("a") + token % 26])
    return character[-1:] + letter if place % 2 else letter + character[:-1]
