"""A day of ten phones: the page stays small, and drawing it takes little time and memory."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest


def measured(*arguments: str) -> dict[str, float]:
    command = [sys.executable, "-m", "tests.report.day", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
    numbers: dict[str, float] = json.loads(done.stdout)
    return numbers


def test_a_day_of_ten_phones_is_drawn_in_time_memory_and_size() -> None:
    took = measured()
    assert took["seconds"] < 20
    assert took["memory_mb"] < 300
    assert took["file_mb"] < 5


@pytest.mark.deep
@pytest.mark.timeout(600)
def test_a_day_of_ten_phones_is_read_judged_and_drawn_in_memory_and_size() -> None:
    took = measured("--telemetry")
    assert took["memory_mb"] < 300
    assert took["file_mb"] < 5
