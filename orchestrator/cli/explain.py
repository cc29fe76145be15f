"""`fleet explain`: what a check, a cause, an exit code, a scenario or a lint rule means."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.report.pages.library import library, page_of
from orchestrator.report.pages.page import WIDTH, as_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from orchestrator.report.pages.page import Page

app = typer.Typer(rich_markup_mode=None)


def _beginning_with(incomplete: str) -> list[str]:
    return [name for name in library() if name.startswith(incomplete)]


@app.command()
def explain(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            help="Check ids, causes, outcomes, exit codes, scenarios, lint rules.",
            metavar="[word]...",
            autocompletion=_beginning_with,
        ),
    ] = None,
) -> None:
    """Say what a word of a report means, how it is decided, its usual causes, what to do.

    Without a word, lists all of them. Examples: fleet explain trim.on-schedule; fleet explain
    jetsam_per_process_limit; fleet explain 4; fleet explain nightly
    """
    if not words:
        _contents(library().values())
        return
    print("\n\n".join(as_text(page_of(word)) for word in words))


def _contents(pages: Iterable[Page]) -> None:
    kinds: dict[str, list[str]] = {}
    for page in pages:
        kinds.setdefault(page.kind, []).append(page.name)
    for kind, names in kinds.items():
        print(f"{kind}:".replace("`", ""))
        print(
            textwrap.fill(
                ", ".join(names),
                WIDTH,
                initial_indent="  ",
                subsequent_indent="  ",
                break_on_hyphens=False,
            )
        )
