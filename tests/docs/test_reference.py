"""Every check, cause and exit code has a page, in `fleet explain` and in `docs/reference/`."""

from __future__ import annotations

import pytest

from orchestrator.cli.schema import schema_text
from orchestrator.config.scenario_catalog import SCENARIOS
from orchestrator.domain.checks import CHECK_IDS
from orchestrator.domain.errors import UsageError
from orchestrator.domain.outcome import Cause, ExitCode, Outcome, Result
from orchestrator.mlpackage.lint.run import RULES
from orchestrator.report.pages.library import library, page_of
from orchestrator.report.pages.page import WIDTH, as_text
from tests.docs.generated import PAGES, REFERENCE, SCHEMA, current

WORDS = (
    *CHECK_IDS,
    *(cause.value for cause in Cause),
    *(outcome.value for outcome in Outcome),
    Result.SKIPPED.value,
    Result.UNMEASURED.value,
    *(str(int(code)) for code in ExitCode),
    *SCENARIOS,
    *(rule.id for rule in RULES),
)


@pytest.mark.parametrize("name", PAGES)
def test_a_reference_page_is_current(name: str) -> None:
    assert (REFERENCE / name).read_text() == current(name), f"run `make docs`: {name} is stale"


def test_the_committed_schema_is_current() -> None:
    assert SCHEMA.read_text() == schema_text(), "run `make docs`: the schema is stale"


def test_every_word_has_a_page_and_no_page_is_of_nothing() -> None:
    assert sorted(library()) == sorted(WORDS)


@pytest.mark.parametrize("word", WORDS)
def test_a_page_says_what_how_and_what_to_do_in_80_columns(word: str) -> None:
    page = page_of(word)
    assert page.name == word
    assert page.meaning
    assert not page.meaning.endswith(".")
    assert page.decided.endswith(".")
    assert page.what_to_do
    assert all(len(line) <= WIDTH for line in as_text(page).splitlines())


def test_every_check_and_every_death_has_usual_causes() -> None:
    deaths = [cause.value for cause in Cause if cause is not Cause.COMPLETED]
    assert all(page_of(word).causes for word in (*CHECK_IDS, *deaths))


def test_words_are_found_whatever_their_case_and_separators() -> None:
    assert page_of("Memory_Drift").name == "memory.drift"
    assert page_of("`device-lost`").name == "device_lost"
    plain = {word.replace("_", "-").replace(".", "-") for word in WORDS}
    assert len(plain) == len(WORDS)


def test_an_unknown_word_names_its_neighbours() -> None:
    with pytest.raises(UsageError, match=r"no page about 'trim\.schedule'.*trim\.on-schedule"):
        page_of("trim.schedule")
    with pytest.raises(UsageError, match="`fleet explain` lists all words"):
        page_of("?!")


def test_a_part_of_a_word_names_all_that_have_it() -> None:
    with pytest.raises(UsageError) as refused:
        page_of("jetsam")
    for cause in ("jetsam_per_process_limit", "jetsam_system_pressure"):
        assert cause in str(refused.value)
    with pytest.raises(UsageError, match=r"Near it: jetsam_system_pressure"):
        page_of("system_pressure")
