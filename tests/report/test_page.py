from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pytest

from orchestrator.report.attempts import Attempt, attempt_of
from orchestrator.report.deciding import DecidingRecord
from orchestrator.report.excerpt import Excerpt, Victim
from orchestrator.report.last_green import GreenPhone, GreenRun
from orchestrator.report.page import html_page
from orchestrator.runlog.documents import SkippedPhone
from orchestrator.verdict.series import ThermalSpan
from tests.report.results import (
    HOSTILE,
    STARTED_S,
    check,
    death,
    kill_report,
    phone,
    run,
    stamps,
    timeline,
    timeline_of_a_death,
    verdict,
)
from tests.report.runs import EVIDENCE

if TYPE_CHECKING:
    from orchestrator.report.result import RunResult

VOID = {"meta", "br", "col", "wbr"}


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


GREEN = GreenRun(
    run_id="20260109T120000Z-green1",
    started_s=STARTED_S - 86_400,
    phones=[
        GreenPhone(
            udid="00008130-0000000000000001",
            model="iPhone 15 Pro",
            os_build="22F76",
            model_digest="0123456789ab",
            app_build="release",
            app_sha256="b7" * 32,
            app_commit="c0" * 20,
        )
    ],
)
EXCERPT = Excerpt(
    file="devices/desk-1-00000001/attempts/1/reports/JetsamEvent.ips",
    kind="jetsam",
    lines=("16,384 bytes a page",),
    victims=(
        Victim("assetsd", False, "vm-pageshortage", 24 * 1024**2, None),
        Victim("SoakHarness", True, "per-process-limit", 3240 * 1024**2, True),
    ),
    victims_left_out=4,
    frames=("0  App  main",),
    frames_left_out=2,
)


def full() -> RunResult:
    killed = phone(
        death(virtual=True, stand_in=True),
        reports=(kill_report(), kill_report(ours=False, summary="assetsd was killed")),
        timeline=timeline_of_a_death(),
        excerpts=(EXCERPT,),
        stamps=stamps(),
        attempts=(attempt_of(EVIDENCE),),
    )
    return run(killed, phone(verdict(check(), alias="desk-2")), last_green=GREEN)


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
    assert all(
        address.startswith(("../devices/", "#phone-", "#chart-")) for address in page.addresses
    )


def test_the_timeline_is_drawn_for_wide_and_narrow_with_a_text_alternative() -> None:
    page = Page(full())
    assert page.tags.count("svg") == 2
    assert "at most 1,024 tokens of a budget of 1,024" in page.text
    assert "1 predicted, 1 observed" in page.text


def test_virtual_and_stand_in_are_marked_on_top_at_the_phone_and_on_every_printed_page() -> None:
    page = html_page(full())
    assert page.count(">VIRTUAL") == 2
    assert page.count(">STAND-IN APP") == 2
    assert '@bottom-left { content: "VIRTUAL: no iPhone was involved' in page
    plain = html_page(run(phone(verdict())))
    assert "VIRTUAL" not in plain
    assert "STAND-IN" not in plain


def test_the_first_screen_answers_what_broke_and_what_changed() -> None:
    text = Page(full()).text
    assert "What broke FAIL desk-1 jetsam_per_process_limit" in text
    assert "Last green: 20260109T120000Z-green1" in text
    assert "model digest : 0123456789ab then, d5e1c6554b1f now desk-1" in text
    assert "iOS build 22F76 22F76" not in text


def test_without_a_green_run_the_page_says_so() -> None:
    assert "No earlier green run is known here." in Page(run(phone(verdict()))).text


def test_a_death_shows_what_the_host_saw_the_victims_and_the_calls() -> None:
    text = Page(full()).text
    assert "What the host saw" in text
    assert "SoakHarness (the app) per-process-limit 3,240.0 MiB yes" in text
    assert "assetsd vm-pageshortage 24.0 MiB not said" in text
    assert "0 App main" in text
    assert "4 more." in text


def test_the_environment_is_stamped() -> None:
    assert "iOS build 22F76 Harness commit" in Page(full()).text


def test_a_failing_check_shows_its_record_and_the_usual_causes() -> None:
    failing = check("memory.peak", "fail", value=2**31, unit="bytes", launch="0f8fad5b-d9", seq=9)
    record = DecidingRecord("0f8fad5b-d9", 9, 12, '{"kind":"sample"}')
    text = Page(run(phone(verdict(failing, outcome="FAIL"), records=(record,)))).text
    assert "0f8fad5b #9 line 12" in text
    assert '{"kind":"sample"}' in text
    assert "Usual causes: the weights of a larger class's package" in text


def test_failing_checks_come_first() -> None:
    checks = (check("load.time"), check("memory.peak", "skipped"), check("crash.none", "fail"))
    text = Page(run(phone(verdict(*checks, outcome="FAIL")))).text
    table = text[text.index("Deciding record") :]
    assert table.index("crash.none") < table.index("load.time") < table.index("memory.peak")


def test_a_check_of_a_newer_version_is_shown_without_a_title() -> None:
    assert "future.check" in Page(run(phone(verdict(check("future.check"))))).text


def test_retries_are_not_hidden() -> None:
    tries = (attempt_of(EVIDENCE), attempt_of(EVIDENCE))
    assert "2 attempts" in Page(run(phone(verdict(), attempts=tries))).text


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
            timeline=timeline(thermal=(ThermalSpan(0.0, HOSTILE),)),
            excerpts=(replace(EXCERPT, lines=(HOSTILE,), frames=(HOSTILE,), file=HOSTILE),),
            stamps=stamps(os_build=HOSTILE, app_build=HOSTILE),
            attempts=(Attempt(1, HOSTILE, HOSTILE, (HOSTILE,)),),
            records=(DecidingRecord(HOSTILE, 1, 1, HOSTILE),),
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


def test_no_phone_fills_the_page_alone() -> None:
    long = "x" * 1_000_000
    checks = [check(result="fail", reason=long, value=long, launch=long, seq=1)]
    page = html_page(run(phone(death(checks=checks, explanation=long, alias=long, model=long))))
    assert len(page) < 100_000


def test_the_page_fits_small_screens_paper_and_dark_rooms() -> None:
    page = html_page(full())
    for needed in ("width=device-width", "@media print", "prefers-color-scheme: dark"):
        assert needed in page
