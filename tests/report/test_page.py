from __future__ import annotations

from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pytest

from orchestrator.report.page import html_page
from orchestrator.runlog.documents import SkippedPhone
from tests.report.results import (
    HOSTILE,
    MARKS,
    STARTED_S,
    check,
    death,
    kill_report,
    phone,
    run,
    track,
    verdict,
)

if TYPE_CHECKING:
    from orchestrator.report.result import RunResult
from orchestrator.report.timeline import draw

VOID = {"meta"}


class Page(HTMLParser):
    """Counts elements, collects texts and addresses, and refuses unbalanced markup."""

    def __init__(self, result: RunResult) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.addresses: list[str] = []
        self.attributes: list[str] = []
        self._open: list[str] = []
        self.feed(html_page(result))
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]
        self.addresses += [value or "" for name, value in attrs if name in {"href", "src"}]
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())


def full() -> RunResult:
    track("Context", "tokens", bound=1024.0, bound_name="budget")
    killed = phone(
        death(virtual=True, stand_in=True),
        reports=(kill_report(), kill_report(ours=False, summary="assetsd was killed")),
        timeline=draw(
            [track(), track("Context", "tokens", bound=1024.0, bound_name="budget")], MARKS
        ),
    )
    return run(killed, phone(verdict(check(), alias="desk-2")))


def test_the_page_tells_outcome_cause_and_last_facts() -> None:
    text = Page(full()).text
    assert "FAIL: 1 of 2 phones passed" in text
    assert "The app passed its memory limit and was killed." in text
    assert "3,240.0 MiB (96.0% of the limit)" in text
    assert "4711" in text


def test_the_page_is_self_contained_and_has_no_script() -> None:
    page = Page(full())
    assert "script" not in page.tags
    assert not any(name.startswith("on") for name in page.attributes)
    assert page.addresses
    assert all(address.startswith(("../devices/", "#phone-")) for address in page.addresses)


def test_the_timeline_is_drawn_with_a_text_alternative() -> None:
    page = Page(full())
    assert page.tags.count("svg") == 2
    assert page.tags.count("polygon") == 2
    assert "Context: lowest 900, highest 2,000, last 2,000 tokens; budget 1,024 tokens" in page.text


def test_virtual_and_stand_in_are_marked_on_top_and_at_the_phone() -> None:
    text = Page(full()).text
    assert text.count("VIRTUAL") == 2
    assert text.count("STAND-IN APP") == 2
    plain = Page(run(phone(verdict()))).text
    assert "VIRTUAL" not in plain
    assert "STAND-IN" not in plain


def test_reports_about_others_are_told_apart() -> None:
    assert Page(full()).text.count("(not about this soak's app)") == 1


def test_a_required_check_without_data_stands_out() -> None:
    page = Page(run(phone(verdict(check(result="unmeasured", reason="no trim")))))
    assert "unmeasured (required)" in page.text


def test_hostile_texts_are_escaped_everywhere() -> None:
    reason = check(result="fail", reason=HOSTILE, value=HOSTILE, launch=HOSTILE, seq=1)
    hostile = verdict(
        reason,
        alias=HOSTILE,
        model=HOSTILE,
        os=HOSTILE,
        product_type=HOSTILE,
        udid=HOSTILE,
        explanation=HOSTILE,
        outcome="FAIL",
        last_breadcrumb=HOSTILE,
    )
    skipped = SkippedPhone(udid="u", alias=HOSTILE, model=HOSTILE, os=HOSTILE, reason=HOSTILE)
    result = run(
        phone(
            hostile,
            reports=(kill_report(file=HOSTILE, summary=HOSTILE),),
            files=(HOSTILE,),
            timeline=draw([track(title=HOSTILE)], MARKS),
        ),
        skipped=(skipped,),
        host=HOSTILE,
    )
    page = Page(result)
    assert "script" not in page.tags
    assert "<script>alert(1)</script>" in page.text
    html_page(result).encode()
    assert "\x1b" not in html_page(result)
    assert "\u202e" not in html_page(result)


@pytest.mark.parametrize("ended_s", [None, STARTED_S + 60])
def test_a_run_without_phones_still_has_a_page(ended_s: float | None) -> None:
    assert "No phone was soaked." in Page(run(ended_s=ended_s)).text


def test_the_page_fits_small_screens_paper_and_dark_rooms() -> None:
    page = html_page(full())
    for needed in ("width=device-width", "@media print", "prefers-color-scheme: dark"):
        assert needed in page
