"""Stand-ins for names: the same one for the same original throughout one copy.

Phones and processes are numbered; tokens and digests go through a keyed hash whose key is thrown
away with the copy, so that nobody can try texts until one fits.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from functools import partial
from typing import Final

_TOKEN_BITS: Final = 31  # ids stay positive int32
_PATTERNS: Final = (
    ("udid", re.compile(r"\b[0-9A-Fa-f]{8}-[0-9A-Fa-f]{16}\b")),
    ("udid", re.compile(r"(?<![0-9A-Za-z])[0-9a-f]{40}(?![0-9A-Za-z])")),
    ("address", re.compile(r"\b(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}\b")),
    ("mail", re.compile(r"[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9.-]{1,255}\.[A-Za-z]{2,24}")),
)
_HOME: Final = re.compile(r"(/Users/|/home/)[^/\s\"']+")


class Pseudonyms:
    """What stands for what in one copy."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._known: dict[str, str] = {}
        self._counts: dict[str, int] = {}
        self._tokens: dict[int, int] = {}
        self._pattern: re.Pattern[str] | None = None

    def pattern_of_originals(self) -> re.Pattern[str] | None:
        """Return what must match nowhere in the copy; None where nothing is known yet."""
        return self._compiled() if self._known else None

    def learn_processes(self, least_characters: int) -> None:
        """Replace the process names met so far in texts too; short ones are words as well."""
        for place in list(self._counts):
            kind, _, original = place.partition("\0")
            if kind == "process" and len(original) >= least_characters:
                self.learn(original, self.name(kind, original))

    def learn(self, original: str, stand_in: str) -> None:
        """Replace a text by another from now on; the first meaning of a text stays."""
        if original.strip() and original not in self._known:
            self._known[original] = stand_in
            self._pattern = None

    def name(self, kind: str, original: str) -> str:
        """Return the stand-in of a name, a new number for a new one; texts do not learn it."""
        number = self._numbered(kind, original)
        return f"{kind}-{number}"

    def _numbered(self, kind: str, original: str) -> int:
        place = f"{kind}\0{original}"
        if place not in self._counts:
            self._counts[place] = self._counts[kind] = self._counts.get(kind, 0) + 1
        return self._counts[place]

    def udid(self, original: str) -> str:
        """Return a stand-in of the shape of a UDID."""
        return f"00000000-{self._numbered('udid', original):016}"

    def token(self, token_id: int) -> int:
        """Return the stand-in of a token id."""
        if token_id not in self._tokens:
            digest = self._hash(str(token_id))
            self._tokens[token_id] = int.from_bytes(digest[:4], "big") >> (32 - _TOKEN_BITS)
        return self._tokens[token_id]

    def digest(self, original: str) -> str:
        """Return 16 hex digits for a hash that a text could be tried against."""
        return self._hash(original).hex()[:16]

    def _hash(self, text: str) -> bytes:
        return hmac.new(self._key, text.encode("utf-8", "surrogatepass"), hashlib.sha256).digest()

    def text(self, original: str) -> str:
        """Return a text with every known name, and what looks like one, replaced."""
        if self._known:
            original = self._compiled().sub(lambda match: self._known[match[0]], original)
        for kind, pattern in _PATTERNS:
            original = pattern.sub(partial(self._like, kind), original)
        return _HOME.sub(r"\1person", original)

    def _like(self, kind: str, match: re.Match[str]) -> str:
        original = match[0]
        if kind != "udid":
            return self.name(kind, original)
        return original if original.startswith("00000000-") else self.udid(original)

    def _compiled(self) -> re.Pattern[str]:
        if self._pattern is None:
            # The longest first: a folder's name holds the phone's.
            longest = sorted(self._known, key=len, reverse=True)
            either = "|".join(re.escape(original) for original in longest)
            self._pattern = re.compile(rf"(?<![A-Za-z0-9])(?:{either})(?![A-Za-z0-9])")
        return self._pattern
