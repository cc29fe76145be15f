"""The page in a browser: live, accessible, unbroken at any width, deaf to hostile text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from axe_playwright_python.sync_playwright import Axe

from orchestrator.runlog.files import write_document
from tests.live.phones import summary
from tests.live.web.serving import Served, served
from tests.report.browser import started_browser, watched_page
from tests.report.runs import PLAN, write_run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page

    from tests.report.runs import WrittenRun

SCRIPT = "<script>alert(1)</script><img src=x onerror=alert(2)>\u202e" + "x" * 3000


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with started_browser() as browser:
        yield browser


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    with watched_page(browser) as page:
        yield page


@pytest.fixture
def run(tmp_path: Path) -> WrittenRun:
    """A run of 50 phones that goes on; the second one is hostile."""
    written = write_run(tmp_path / "run")
    written.rewrite_run(ended_s=None)
    plan = json.loads(written.paths.plan.read_bytes())
    (phone,) = plan["phones"]
    others = [
        phone | {"udid": f"{index:040d}", "alias": f"bench-{index:02d}", "directory": f"b{index}"}
        for index in range(49)
    ]
    others[0]["alias"] = SCRIPT
    plan["phones"] = [phone, *others]
    written.paths.plan.write_text(json.dumps(plan))
    return written


@pytest.fixture
def server(run: WrittenRun) -> Iterator[Served]:
    with served(lambda: run.root) as started:
        yield started


def opened(page: Page, server: Served) -> None:
    page.goto(server.address)
    page.wait_for_selector("#phones tr", timeout=30_000)


def test_what_happens_is_shown_without_a_reload(
    page: Page, run: WrittenRun, server: Served
) -> None:
    opened(page, server)
    assert page.locator("#state").inner_text() == "running"
    assert page.locator("#phones tr").count() == 50
    write_document(run.paths.summary_json, summary("FAIL", "hang"))
    run.rewrite_run(ended_s=1.0)
    page.wait_for_selector("#banner.FAIL", timeout=30_000)
    assert page.title().startswith("FAIL")
    first = page.locator("#phones tr").first.inner_text()
    assert PLAN.phones[0].alias in first
    assert "FAIL hang" in first
    assert page.locator("#report").is_visible()
    assert page.locator("#alarms").inner_text() == f"Needs a look: {PLAN.phones[0].alias}"


DEEP = pytest.mark.deep


@pytest.mark.parametrize(
    ("width", "scheme"),
    [
        (320, "light"),
        (1440, "dark"),
        pytest.param(320, "dark", marks=DEEP),
        pytest.param(768, "light", marks=DEEP),
        pytest.param(1440, "light", marks=DEEP),
    ],
)
def test_the_page_is_accessible_and_fits(
    page: Page, run: WrittenRun, server: Served, width: int, scheme: str
) -> None:
    plan = json.loads(run.paths.plan.read_bytes())
    plan["phones"] = plan["phones"][:3]  # the hostile one is among them; axe takes its time
    run.paths.plan.write_text(json.dumps(plan))
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    page.set_viewport_size({"width": width, "height": 900})
    opened(page, server)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()


def test_a_lost_server_is_said(page: Page, run: WrittenRun) -> None:
    with served(lambda: run.root) as server:
        opened(page, server)
    page.wait_for_selector("#trouble:not([hidden])", timeout=30_000)
    assert "what is shown is old" in page.locator("#trouble").inner_text()
