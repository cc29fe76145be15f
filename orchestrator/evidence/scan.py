"""JSON objects out of a text source, member by member, so that memory does not grow with them.

Python's decoder needs the whole text at once and gives nothing for a cut one. Here every member of
the outermost object is cut out by its brackets and quotes, decoded alone, and kept only if wanted.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from orchestrator.evidence.fields import Json
    from orchestrator.evidence.source import TextSource

LONGEST_VALUE: Final = 4 << 20  # characters; a longer value is skipped, by its brackets alone
TRUNCATED: Final = "truncated"
DAMAGED: Final = "damaged"

# Panic logs hold raw line feeds inside strings, which strict JSON forbids.
_DECODER: Final = json.JSONDecoder(strict=False)

# Possessive: without them a cut string is searched again from every quote in it.
_SPACE: Final = re.compile(r"[ \t\r\n\0\ufeff]*+")
_SCALAR: Final = re.compile(r"[^,\]}\s\"\[{:]*+")
_STRING_REST: Final = re.compile(r"[^\"\\]*+(?:\\.[^\"\\]*+)*+", re.DOTALL)
_BETWEEN_BRACKETS: Final = re.compile(
    r"[^\"{}\[\]]*+(?:\"[^\"\\]*+(?:\\.[^\"\\]*+)*+\"[^\"{}\[\]]*+)*+", re.DOTALL
)


@dataclass(slots=True)
class Members:
    """What an object holds of what was wanted."""

    fields: Json = field(default_factory=dict)
    damage: str | None = None  # `truncated`: the text ended first; `damaged`: it is no JSON
    skipped: set[str] = field(default_factory=set)  # wanted, but too long


class _BrokenError(Exception):
    """The text ended inside a value, or is no JSON there."""

    def __init__(self, damage: str) -> None:
        self.damage = damage
        super().__init__(damage)


class Scanner:
    """Reads objects from a source.

    Args:
        source: The text.
        wanted: Members to keep; the others are only checked.
        lists: Members that are lists of any length: their elements are given away one by one, and
            the member itself is kept as True.
    """

    def __init__(
        self,
        source: TextSource,
        wanted: frozenset[str],
        lists: Mapping[str, Callable[[object], None]],
    ) -> None:
        self._source, self._wanted, self._lists = source, wanted, lists
        self._kept: list[str] = []
        self._kept_length = 0
        self._mark: int | None = None  # where the value that is being kept goes on

    def peek(self) -> str:
        """Skip white space and return the next character, empty at the end of the part."""
        source = self._source
        while True:
            match = _SPACE.match(source.text, source.position)
            source.position = match.end() if match else source.position
            if source.position < len(source.text):
                return source.text[source.position]
            if not self._fill():
                return ""

    def read_object(self) -> Members:
        """Read the object that begins here; never raises."""
        members = Members()
        self._source.position += 1
        try:
            self._read_members(members)
        except _BrokenError as error:
            self._mark = None
            members.damage = error.damage
            self._skip_rest()
        return members

    def _read_members(self, members: Members) -> None:
        following = self.peek()
        while following != "}":
            key = self._key()
            self._read_member(members, key)
            following = self._after_value("}")
        self._source.position += 1

    def _key(self) -> str:
        if self.peek() != '"':
            raise _BrokenError(DAMAGED if self.peek() else TRUNCATED)
        key = self._value()
        if not isinstance(key, str):
            raise _BrokenError(DAMAGED)
        if self.peek() != ":":
            raise _BrokenError(DAMAGED if self.peek() else TRUNCATED)
        self._source.position += 1
        return key

    def _read_member(self, members: Members, key: str) -> None:
        if key in self._lists and self.peek() == "[":
            members.fields[key] = True
            self._read_elements(self._lists[key])
            return
        value = self._value()
        if key not in self._wanted:
            return
        if value is _TOO_LONG:
            members.skipped.add(key)
        else:
            members.fields[key] = value

    def _read_elements(self, take: Callable[[object], None]) -> None:
        self._source.position += 1
        following = self.peek()
        while following != "]":
            value = self._value()
            take(None if value is _TOO_LONG else value)
            following = self._after_value("]")
        self._source.position += 1

    def _after_value(self, closing: str) -> str:
        """Step over a comma; return what follows, which is `closing` only without a comma."""
        following = self.peek()
        if following == ",":
            self._source.position += 1
            following = self.peek()
            if following and following != closing:
                return following
        elif following == closing:
            return following
        raise _BrokenError(DAMAGED if following else TRUNCATED)

    def _value(self) -> object:
        """Return the decoded value that begins here, or `_TOO_LONG`."""
        first = self.peek()
        if not first:
            raise _BrokenError(TRUNCATED)
        self._kept, self._kept_length = [], 0
        self._mark = self._source.position
        if first == '"':
            self._pass_string()
        elif first in "{[":
            self._pass_container()
        else:
            self._pass_scalar()
        raw = self._take_kept()
        if raw is None:
            return _TOO_LONG
        try:
            return _DECODER.decode(raw)
        except (ValueError, RecursionError) as error:
            # ValueError: also integers beyond Python's digit limit.
            raise _BrokenError(DAMAGED) from error

    def _pass_scalar(self) -> None:
        source = self._source
        while True:
            match = _SCALAR.match(source.text, source.position)
            source.position = match.end() if match else source.position
            if source.position < len(source.text) or not self._fill():
                return

    def _pass_string(self) -> None:
        source = self._source
        source.position += 1
        while True:
            match = _STRING_REST.match(source.text, source.position)
            source.position = match.end() if match else source.position
            if source.text[source.position : source.position + 1] == '"':
                source.position += 1
                return
            # The end, or a backslash whose other half is not here yet.
            if not self._fill():
                raise _BrokenError(TRUNCATED)

    def _pass_container(self, depth: int = 0) -> None:
        source = self._source
        while True:
            character = source.text[source.position : source.position + 1]
            if not character:
                if not self._fill():
                    raise _BrokenError(TRUNCATED)
                continue
            if character == '"':  # of a string that the window does not hold whole
                self._pass_string()
            elif character in "{[":
                depth += 1
                source.position += 1
            elif character in "}]":
                depth -= 1
                source.position += 1
                if depth == 0:
                    return
            match = _BETWEEN_BRACKETS.match(source.text, source.position)
            source.position = match.end() if match else source.position

    def _skip_rest(self) -> None:
        """Go behind the bracket that ends a damaged object, as far as it can be told."""
        with suppress(_BrokenError):
            self._pass_container(depth=1)
            return
        self._source.position = len(self._source.text)

    def _fill(self) -> bool:
        if self._mark is not None:
            self._keep()
        more = self._source.fill()
        if self._mark is not None:
            self._mark = self._source.position
        return more

    def _keep(self) -> None:
        source = self._source
        part = source.text[self._mark : source.position]
        self._kept_length += len(part)
        if self._kept_length <= LONGEST_VALUE:
            self._kept.append(part)
        else:
            self._kept.clear()

    def _take_kept(self) -> str | None:
        self._keep()
        self._mark = None
        return "".join(self._kept) if self._kept_length <= LONGEST_VALUE else None


_TOO_LONG: Final = object()
