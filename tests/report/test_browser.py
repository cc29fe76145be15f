"""The page as a browser shows it: accessible, unbroken at any width, deaf to hostile text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import pytest
from axe_playwright_python.sync_playwright import Axe

from orchestrator.report.attempts import Attempt
from orchestrator.report.deciding import DecidingRecord
from orchestrator.report.page import html_page
from orchestrator.report.remake import remake
from tests.report.browser import started_browser, watched_page
from tests.report.results import (
    check,
    death,
    kill_report,
    phone,
    run,
    stamps,
    verdict,
)
from tests.report.runs import LINES, jetsam_report, write_run
from tests.report.test_page import EXCERPT, full

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page

    from orchestrator.report.result import RunResult

SCRIPT = "<script>alert(1)</script><img src=x onerror=alert(2)><svg onload=alert(3)>"
CONTROLS = "".join(map(chr, [*range(32), *range(0x7F, 0xA0), 0x202E, 0x2066, 0xFFFE, 0xD800]))
MEGABYTE = "very long " * 100_000
UNBROKEN = "x" * 1_000_000
TROUBLES = ("FAIL", "ERROR", "ABORTED", "PASS")
WIDTHS_PX = (320, 390, 768, 1280)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with started_browser() as browser:
        yield browser


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    with watched_page(browser) as page:
        yield page


def hostile(text: str) -> RunResult:
    checks = [
        check(result="fail", reason=text, value=text, launch=text, seq=1),
        check("memory.peak", "unmeasured", reason=text),
    ]
    judged = death(
        checks=checks,
        alias=text,
        model=text,
        os=text,
        explanation=text,
        last_breadcrumb=text,
        udid=text,
    )
    return run(
        phone(
            judged,
            reports=(kill_report(file=text, summary=text),),
            files=(text,),
            excerpts=(EXCERPT,),
            stamps=stamps(os_build=text),
            attempts=(Attempt(1, text, text, (text,)),),
            records=(DecidingRecord(text, 1, 1, text),),
        ),
        host=text,
    )


def every_outcome() -> RunResult:
    checks = (check(), check("memory.peak", "skipped", reason="virtual"))
    return run(*(phone(verdict(*checks, outcome=word), stamps=stamps()) for word in TROUBLES))


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Write a page with everything on it first, drawn once: drawing is what takes time."""
    folder = tmp_path_factory.mktemp("pages")
    paths = []
    for number, result in enumerate((full(), every_outcome(), run())):
        paths.append(folder / f"{number}.html")
        paths[-1].write_text(html_page(result), encoding="utf-8")
    return paths


def show(page: Page, path: Path, result: RunResult) -> None:
    path.write_text(html_page(result), encoding="utf-8")
    page.goto(path.as_uri())


def serious(page: Page) -> list[str]:
    found = Axe().run(page).response["violations"]
    return [
        f"{each['id']}: {node['html'][:200]}"
        for each in found
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"][:3]
    ]


def overflow_px(page: Page) -> int:
    width: int = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    return width


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1280, "light"), (1280, "dark")])
def test_axe_finds_nothing_serious(
    page: Page, pages: list[Path], width: int, scheme: Literal["dark", "light"]
) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme)
    for path in pages:
        page.goto(path.as_uri())
        assert serious(page) == []


def test_axe_can_find_something(page: Page) -> None:
    page.set_content("<html lang=en><title>x</title><p style='color:#ccc'>pale</p>")
    assert serious(page)


def test_axe_finds_nothing_serious_in_the_page_of_a_killed_app(page: Page, tmp_path: Path) -> None:
    killed = write_run(tmp_path / "run")
    killed.add_report("JetsamEvent-1.ips", jetsam_report())
    for path in (killed.device.telemetry, killed.attempt.stream(1), killed.attempt.journal(1)):
        path.write_bytes(b"".join(LINES[:-20]))
    remake(killed.root)
    page.goto(killed.paths.html.as_uri())
    assert serious(page) == []


@pytest.mark.parametrize("width", WIDTHS_PX)
def test_no_width_needs_sideways_scrolling(page: Page, pages: list[Path], width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(pages[0].as_uri())
    assert overflow_px(page) <= 0


@pytest.mark.parametrize("width", [390, 1280])
def test_one_timeline_fits_the_width_and_the_other_is_hidden(
    page: Page, pages: list[Path], width: int
) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(pages[0].as_uri())
    shown = [chart.is_visible() for chart in page.locator(".chart").all()]
    assert shown == [width == 1280, width == 390]


def test_check_ids_break_nowhere(page: Page, tmp_path: Path) -> None:
    show(page, tmp_path / "page.html", run(phone(verdict(check("trim.count-consistent")))))
    box = page.locator(".checks th code").bounding_box()
    assert box is not None
    assert box["height"] < 30


@pytest.mark.parametrize("text", [SCRIPT, CONTROLS, MEGABYTE, UNBROKEN], ids=lambda t: repr(t[:9]))
def test_hostile_text_neither_runs_nor_breaks_the_page(
    page: Page, tmp_path: Path, text: str
) -> None:
    show(page, tmp_path / "page.html", hostile(text))
    assert page.locator("script, img, [onload], [onerror]").count() == 0
    assert page.locator(".phone").count() == 1
    assert page.locator("main .checks tbody tr").count() == 2
    assert overflow_px(page) <= 0


def test_paper_shows_what_a_screen_folds(page: Page, pages: list[Path]) -> None:
    page.goto(pages[0].as_uri())
    folded = page.locator("details a").first
    assert not folded.is_visible()
    page.emulate_media(media="print")
    assert folded.is_visible()
    assert page.locator(".on-wide").first.is_visible()
    assert page.pdf(format="A4", prefer_css_page_size=True).startswith(b"%PDF")
