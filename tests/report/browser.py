"""Chromium for tests of the page: present in CI, where its absence is a failure."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

NAMES = ("chromium", "chromium-browser", "google-chrome")


@contextmanager
def started_browser() -> Iterator[Browser]:
    """Yield a browser; skip the test where there is none and none is demanded."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        reason = f"none of {', '.join(NAMES)} is on PATH"
        if os.environ.get("FLEET_REQUIRE_PEERS"):
            pytest.fail(reason)
        pytest.skip(reason)
    from playwright.sync_api import sync_playwright

    # A container's root has no sandbox; the pages are our own files.
    arguments = ["--no-sandbox", "--disable-gpu"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=arguments)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def watched_page(browser: Browser) -> Iterator[Page]:
    """Yield a page on which a dialog or a script's error fails the test."""
    page = browser.new_page()
    page.on("dialog", lambda dialog: pytest.fail(f"a dialog opened: {dialog.message}"))
    page.on("pageerror", lambda error: pytest.fail(f"a script failed: {error}"))
    yield page
    page.close()
