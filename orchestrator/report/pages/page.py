"""One page of explanation, as a terminal and as Markdown show it. Pure."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

WIDTH: Final = 80
_INDENT: Final = "  "


@dataclass(frozen=True, slots=True)
class Page:
    """What one word means, how it is decided, what usually causes it, what to do."""

    kind: str  # "check", "cause of death", "exit code", ...
    name: str
    meaning: str  # one sentence without its full stop
    decided: str  # full sentences
    causes: tuple[str, ...] = ()  # likeliest first
    what_to_do: tuple[str, ...] = ()  # in this order
    facts: tuple[tuple[str, str], ...] = ()  # label and value
    limits: tuple[tuple[str, str, str, str], ...] = ()  # name, default, unit, what it is
    heading: str = "How it is decided"  # over `decided`


def as_text(page: Page) -> str:
    """Return a page for a terminal of 80 columns, without a trailing newline."""
    return "\n".join(_text_lines(page))


def _text_lines(page: Page) -> Iterator[str]:
    yield f"{page.name}  ({page.kind})"
    yield from _section("What it means", [f"{page.meaning}."])
    yield from _section(page.heading, [page.decided])
    yield from _section("Usual causes", page.causes, bullet="* ")
    yield from _section("What to do", page.what_to_do, bullet="* ")
    limits = [f"{name} = {default} {unit}: {what}" for name, default, unit, what in page.limits]
    yield from _section(f"Limits (fleet.yaml, checks: {page.name})", limits, bullet="* ")
    facts = [f"{label}: {value}" for label, value in page.facts]
    yield from _section("Also", facts, bullet="* ")


def _section(title: str, entries: list[str] | tuple[str, ...], bullet: str = "") -> Iterator[str]:
    if not entries:
        return
    yield ""
    yield title
    for entry in entries:
        yield from textwrap.wrap(
            entry,
            WIDTH,
            initial_indent=_INDENT + bullet,
            subsequent_indent=_INDENT + " " * len(bullet),
            break_long_words=False,
            break_on_hyphens=False,
        )


def as_markdown(page: Page) -> str:
    """Return a page as a section of a reference document; ends in a newline."""
    lines = [f"## `{page.name}`", "", f"**{page.meaning}.** {page.decided}", ""]
    if page.causes:
        lines += [f"Usual causes: {'; '.join(page.causes)}.", ""]
    if page.what_to_do:
        lines += [f"What to do: {'; '.join(page.what_to_do)}.", ""]
    for label, value in page.facts:
        lines += [f"{label}: {value}.", ""]
    if page.limits:
        lines += ["| limit | default | unit | what it is |", "|---|---|---|---|"]
        lines += [
            f"| `{name}` | {default} | {unit} | {what} |"
            for name, default, unit, what in page.limits
        ]
        lines.append("")
    return "\n".join(lines)
