"""Texts of phones made harmless, and numbers made readable. All text from a phone is hostile."""

from __future__ import annotations

import math
import re
from typing import Final

MIB: Final = 1024**2
LONGEST_CHARACTERS: Final = 2000  # of one text on a page; the raw files have it whole

# What XML 1.0 forbids (control characters, lone surrogates, U+FFFE and U+FFFF), the C1 controls,
# and the characters that turn the direction of text and so dress one name up as another.
_HARMFUL: Final = re.compile(
    "[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
    "|[\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
# Underscores inside a word are no emphasis, and causes and check ids stay easy to search for.
_MARKDOWN: Final = re.compile(r"([\\`*\[\]|~]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9]))")
_NAME_CHARACTERS: Final = 80
_BRIEF_CHARACTERS: Final = 240
_REPLACEMENT: Final = "\ufffd"


def clean(text: str) -> str:
    """Return a text that any XML or HTML document may hold."""
    return _HARMFUL.sub(_REPLACEMENT, text)


def one_line(text: str) -> str:
    """Return a clean text on one line."""
    return " ".join(clean(text).split())


def shortened(text: str) -> str:
    """Return a clean text of at most `LONGEST_CHARACTERS`: no phone may fill a page alone."""
    cut = text if len(text) <= LONGEST_CHARACTERS else f"{text[:LONGEST_CHARACTERS]}…"
    return clean(cut)


def name(text: str) -> str:
    """Return a clean line that fits a heading: names are short, unless somebody means harm."""
    line = one_line(text[: 4 * _NAME_CHARACTERS])
    return line if len(line) <= _NAME_CHARACTERS else f"{line[:_NAME_CHARACTERS]}…"


def brief(text: str) -> str:
    """Return a clean line that fits a list on the first screen."""
    line = one_line(text[: 4 * _BRIEF_CHARACTERS])
    return line if len(line) <= _BRIEF_CHARACTERS else f"{line[:_BRIEF_CHARACTERS]}…"


def markdown(text: str) -> str:
    """Return a text as it reads in Markdown, in a table cell too, without any markup in it."""
    escaped = _MARKDOWN.sub(r"\\\1", one_line(text))
    for character, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("@", "&#64;")):
        escaped = escaped.replace(character, entity)
    return escaped


_FOUR_DIGITS: Final = 9999.5  # from here on four significant digits are written as a power
_PLURAL: Final = re.compile(r"[a-z]{2,}s")  # not "s" alone, which are seconds


def quantity(value: float | str | None, unit: str | None) -> str:
    """Return a value with its unit, bytes as MiB; an em dash for none."""
    if value is None:
        return "—"
    if unit == "bytes" and not isinstance(value, str):
        return mebibytes(value)
    word = one_line(unit or "")
    if value == 1 and _PLURAL.fullmatch(word):
        word = word[:-1]
    return " ".join(filter(None, (_number(value), word)))


def mebibytes(count: float) -> str:
    """Return a count of bytes as `1,024.0 MiB`."""
    return f"{count / MIB:,.1f} MiB"


def _number(value: float | str) -> str:
    if isinstance(value, str):
        return one_line(value[:LONGEST_CHARACTERS])
    if isinstance(value, int):
        return f"{value:,}"
    # Four digits turn to powers of ten where a count of seconds or bytes is meant.
    return f"{value:,.0f}" if _FOUR_DIGITS <= abs(value) < math.inf else f"{value:,.4g}"


def duration(seconds: float | None) -> str:
    """Return a span as `1 h 02 min`, `2 min 05 s` or `3.4 s`; an em dash for none."""
    if seconds is None:
        return "—"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest_s = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest_s:02} s"
    return f"{minutes // 60} h {minutes % 60:02} min"
