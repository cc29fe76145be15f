"""The grammar of `--devices` expressions: text to a tree, or an error that names the position.

    expression := conjunction ("or" conjunction)*
    conjunction := term ("and" term)*
    term := "not" term | "(" expression ")" | field operator value
    field := model | os | ram_gb | alias | udid | tag | source | host
    operator := = | != | < | <= | > | >=
    value := quoted text | bare words up to `and`, `or`, `not`, a parenthesis or the end

Pure: no phone is touched. `selection` evaluates the tree.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from orchestrator.domain.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable


class Field(StrEnum):
    """What an expression may ask about."""

    MODEL = "model"
    OS = "os"
    RAM_GB = "ram_gb"
    ALIAS = "alias"
    UDID = "udid"
    TAG = "tag"
    SOURCE = "source"
    HOST = "host"


ORDERED_FIELDS: Final = frozenset({Field.OS, Field.RAM_GB})
KEYWORDS: Final = frozenset({"and", "or", "not"})
MAX_DEPTH: Final = 50  # of parentheses and `not`; deeper is a mistake, and would exhaust the stack


@dataclass(frozen=True, slots=True)
class Comparison:
    """One `field operator value`."""

    field: Field
    operator: str
    value: str


@dataclass(frozen=True, slots=True)
class Negation:
    """`not` and what it negates."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class Combination:
    """Operands joined by `and` (all of them) or by `or` (any of them)."""

    needs_all: bool
    operands: tuple[Expression, ...]


Expression = Comparison | Negation | Combination


@dataclass(frozen=True, slots=True)
class Token:
    """One word, quoted text or symbol."""

    kind: str  # word, quoted, operator, paren, end
    text: str
    position: int  # from 1, as a person counts


_SHOWN_CHARS: Final = 60
_TOKEN: Final = re.compile(
    r"\s*(?:(?P<operator><=|>=|!=|=|<|>)|(?P<paren>[()])"
    r"|\"(?P<double>[^\"]*)\"|'(?P<single>[^']*)'|(?P<word>[^\s()<>=!\"']+))"
)


def is_expression(text: str) -> bool:
    """Return whether `--devices` text is an expression; else it is `all` or a list of names."""
    if re.search(r"[=<>()!]", text):
        return True
    return bool(KEYWORDS & set(text.casefold().split()))


def parse(text: str) -> Expression:
    """Return the tree of an expression.

    Raises:
        UsageError: With the position and what was expected there.
    """
    parser = _Parser(text, _tokens(text))
    tree = parser.expression(0)
    parser.expect("end", "`and`, `or` or the end")
    return tree


def complaint(text: str, position: int, problem: str) -> UsageError:
    """Return the error for one place in the text, with what stands before it: one line."""
    before = text[: position - 1].rstrip()
    shown = f"…{before[-_SHOWN_CHARS:]}" if len(before) > _SHOWN_CHARS else before
    return UsageError(
        f"--devices, position {position}: {problem}{f', after: {shown}' if shown else ''}"
    )


def _tokens(text: str) -> list[Token]:
    tokens: list[Token] = []
    at = 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        if match is None:
            start = at + len(text[at:]) - len(text[at:].lstrip())
            raise complaint(text, start + 1, f"{text[start]!r} was not expected here")
        kind = str(match.lastgroup)
        tokens.append(
            Token(
                "quoted" if kind in ("double", "single") else kind,
                match[kind],
                match.start(kind) + 1,
            )
        )
        at = match.end()
    return [*tokens, Token("end", "the end", len(text) + 1)]


class _Parser:
    """Recursive descent over the tokens of one text."""

    def __init__(self, text: str, tokens: list[Token]) -> None:
        self._text = text
        self._tokens = tokens
        self._at = 0

    def expression(self, depth: int) -> Expression:
        return self._joined("or", lambda: self._joined("and", lambda: self._term(depth)))

    def expect(self, kind: str, wanted: str) -> Token:
        token = self._next
        if token.kind != kind:
            raise self._unexpected(wanted)
        self._at += 1
        return token

    @property
    def _next(self) -> Token:
        return self._tokens[min(self._at, len(self._tokens) - 1)]

    def _at_word(self, word: str) -> bool:
        return self._next.kind == "word" and self._next.text.casefold() == word

    def _unexpected(self, wanted: str) -> UsageError:
        token = self._next
        found = token.text if token.kind == "end" else repr(token.text)
        return complaint(self._text, token.position, f"expected {wanted}, found {found}")

    def _joined(self, word: str, operand: Callable[[], Expression]) -> Expression:
        operands = [operand()]
        while self._at_word(word):
            self._at += 1
            operands.append(operand())
        return operands[0] if len(operands) == 1 else Combination(word == "and", tuple(operands))

    def _term(self, depth: int) -> Expression:
        if depth > MAX_DEPTH:
            raise complaint(self._text, self._next.position, f"nested deeper than {MAX_DEPTH}")
        if self._at_word("not"):
            self._at += 1
            return Negation(self._term(depth + 1))
        if self._next.kind == "paren" and self._next.text == "(":
            self._at += 1
            inner = self.expression(depth + 1)
            if self._next.text != ")" or self._next.kind != "paren":
                raise self._unexpected("`)`, `and` or `or`")
            self._at += 1
            return inner
        return self._comparison()

    def _comparison(self) -> Comparison:
        field = self._field()
        operator = self.expect("operator", "one of = != < <= > >=")
        if operator.text not in ("=", "!=") and field not in ORDERED_FIELDS:
            problem = f"{field} can be compared with = and != only"
            raise complaint(self._text, operator.position, problem)
        position = self._next.position
        value = self._value(one_word=field in ORDERED_FIELDS)
        if field is Field.OS and not re.fullmatch(r"\d{1,4}(\.\d{1,4}){0,3}", value, re.ASCII):
            raise complaint(self._text, position, f"expected a version like 18.5, found {value!r}")
        if field is Field.RAM_GB and not re.fullmatch(r"\d{1,4}", value, re.ASCII):
            raise complaint(self._text, position, f"expected whole GB like 8, found {value!r}")
        return Comparison(field, operator.text, value)

    def _field(self) -> Field:
        names = ", ".join(Field)
        if self._next.kind != "word" or self._next.text.casefold() not in set(Field):
            raise self._unexpected(f"one of {names}")
        self._at += 1
        return Field(self._tokens[self._at - 1].text.casefold())

    def _value(self, *, one_word: bool) -> str:
        if self._next.kind == "quoted":
            self._at += 1
            return " ".join(self._tokens[self._at - 1].text.split())
        words: list[str] = []
        while self._next.kind == "word" and self._next.text.casefold() not in KEYWORDS:
            words.append(self._next.text)
            self._at += 1
            if one_word:
                break
        if not words:
            raise self._unexpected("a value")
        return " ".join(words)
