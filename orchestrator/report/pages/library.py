"""All pages there are, each made of the values that the product itself works with."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Final

from orchestrator.domain.defects import DEFECTS
from orchestrator.domain.errors import UsageError
from orchestrator.mlpackage.lint.run import RULES
from orchestrator.report.pages.causes import CAUSES
from orchestrator.report.pages.exit_codes import EXIT_CODES
from orchestrator.report.pages.outcomes import OUTCOMES
from orchestrator.report.pages.page import Page
from orchestrator.report.pages.scenarios import scenario_pages
from orchestrator.verdict.catalog import CATALOG

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from orchestrator.mlpackage.lint.rule import Rule
    from orchestrator.verdict.check import CheckInfo

CHECK_KIND: Final = "check"
_SHORTEST_PART: Final = 3  # characters: shorter ones are in every other name
_MOST_NEAR: Final = 8
RULE_KIND: Final = "rule of `fleet model lint`"


def check_page(info: CheckInfo) -> Page:
    """Return the page of a check."""
    defects = ", ".join(f"`{defect.name}`" for defect in DEFECTS if defect.check == info.id)
    return Page(
        CHECK_KIND,
        info.id,
        info.title,
        info.meaning,
        info.causes,
        info.what_to_do,
        (("Defects that it must catch", defects),),
        tuple(
            (limit.name, f"{limit.default:g}", limit.unit, limit.meaning) for limit in info.limits
        ),
    )


def rule_page(rule: Rule) -> Page:
    """Return the page of a rule about model packages; `docs/lint/` holds the long one."""
    return Page(
        RULE_KIND,
        rule.id,
        f"A package breaks this rule of the level {rule.level.value}",
        rule.failure,
        (),
        (rule.remedy,),
        (("Source", rule.source), ("In full", f"docs/lint/{rule.id}.md")),
        heading="What happens on a phone",
    )


def library() -> Mapping[str, Page]:
    """Return every page by its name, in the order of a table of contents."""
    pages = [
        *(check_page(info) for info in CATALOG.values()),
        *CAUSES.values(),
        *OUTCOMES,
        *EXIT_CODES.values(),
        *scenario_pages(),
        *(rule_page(rule) for rule in RULES),
    ]
    return {page.name: page for page in pages}


def page_of(word: str) -> Page:
    """Return the page of a word, whatever its case and its kind of hyphen.

    Raises:
        UsageError: If there is none; names the nearest.
    """
    pages = library()
    # No two names differ by dots, hyphens and underscores alone; a test holds that.
    by_plain = {_plain(name): page for name, page in pages.items()}
    found = by_plain.get(_plain(word))
    if found is not None:
        return found
    names = ", ".join(by_plain[name].name for name in _near(_plain(word), by_plain))
    raise UsageError(
        f"there is no page about {word!r}",
        remedy=f"Near it: {names}" if names else "`fleet explain` lists all words",
    )


def _near(word: str, names: Iterable[str]) -> list[str]:
    """Return the names that begin with a word, those that hold it, and those spelled like it."""
    known = list(names)
    holding = [name for name in known if len(word) >= _SHORTEST_PART and word in name]
    holding.sort(key=lambda name: not name.startswith(word))  # stable: else the pages' order
    like = difflib.get_close_matches(word, known, n=3, cutoff=0.5)
    return list(dict.fromkeys([*holding[:_MOST_NEAR], *like]))


def _plain(word: str) -> str:
    return word.strip().strip("`").casefold().replace("_", "-").replace(".", "-")
