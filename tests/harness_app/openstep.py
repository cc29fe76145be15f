"""A reader of OpenStep property lists, the format of Xcode's `project.pbxproj`."""

from __future__ import annotations

import re
from typing import Final, TypeAlias

Plist: TypeAlias = "str | list[Plist] | dict[str, Plist]"

_TOKEN: Final = re.compile(
    r"""
    \s+ | //[^\n]* | /\*.*?\*/          # space and comments
    | (?P<mark>[{}()=;,])
    | "(?P<quoted>(?:[^"\\]|\\.)*)"
    | (?P<plain>[A-Za-z0-9_.$/:-]+)
    """,
    re.VERBOSE | re.DOTALL,
)


class OpenStepError(ValueError):
    """The text is no property list."""


def parse(text: str) -> Plist:
    """Return the property list of a whole file.

    Raises:
        OpenStepError: If it is none, or something follows it.
    """
    tokens = _tokens(text)
    value = _value(tokens)
    if tokens:
        raise OpenStepError(f"{tokens[-1]!r} follows the property list")
    return value


def _tokens(text: str) -> list[tuple[str, str]]:
    """Return kind and text of each token, last one first."""
    found: list[tuple[str, str]] = []
    place = 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            raise OpenStepError(f"unexpected {text[place : place + 20]!r} at {place}")
        place = match.end()
        if match.lastgroup:
            kind = "mark" if match.lastgroup == "mark" else "text"
            found.append((kind, match[match.lastgroup]))
    return found[::-1]


def _value(tokens: list[tuple[str, str]]) -> Plist:
    kind, text = _next(tokens)
    if kind == "text":
        return text
    if text == "{":
        return _members(tokens)
    if text == "(":
        return _items(tokens)
    raise OpenStepError(f"unexpected {text!r}")


def _members(tokens: list[tuple[str, str]]) -> dict[str, Plist]:
    members: dict[str, Plist] = {}
    while not _ends(tokens, "}"):
        kind, name = _next(tokens)
        if kind != "text" or name in members:
            raise OpenStepError(f"{name!r} is no new key")
        _expect(tokens, "=")
        members[name] = _value(tokens)
        _expect(tokens, ";")
    return members


def _items(tokens: list[tuple[str, str]]) -> list[Plist]:
    items: list[Plist] = []
    while not _ends(tokens, ")"):
        items.append(_value(tokens))
        if not _ends(tokens, ")", take=False):
            _expect(tokens, ",")
    return items


def _ends(tokens: list[tuple[str, str]], mark: str, *, take: bool = True) -> bool:
    if not tokens or tokens[-1] != ("mark", mark):
        return False
    if take:
        tokens.pop()
    return True


def _expect(tokens: list[tuple[str, str]], mark: str) -> None:
    if _next(tokens) != ("mark", mark):
        raise OpenStepError(f"expected {mark!r}")


def _next(tokens: list[tuple[str, str]]) -> tuple[str, str]:
    if not tokens:
        raise OpenStepError("the text ends early")
    return tokens.pop()
