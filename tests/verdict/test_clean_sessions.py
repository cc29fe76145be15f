"""Clean sessions with noise raise no alarm, by hundreds."""

from __future__ import annotations

import pytest

from tests.verdict.host_side import failures, judged
from tests.verdict.noisy_phones import NoisyApp

SESSIONS = 304
EACH = 38


@pytest.mark.parametrize("first", range(0, SESSIONS, EACH))
def test_noise_raises_no_alarm(first: int) -> None:
    alarms = {seed: failures(judged(NoisyApp(seed))) for seed in range(first, first + EACH)}
    assert {seed: failed for seed, failed in alarms.items() if failed} == {}


def test_the_noise_measures_every_check_in_most_sessions() -> None:
    """A check that noise keeps from being measured would be silent, not clean."""
    measured: dict[str, int] = {}
    for seed in range(EACH):
        for check in judged(NoisyApp(seed)).verdict.checks:
            measured[check.id] = measured.get(check.id, 0) + (check.result == "pass")
    assert {check_id: count for check_id, count in measured.items() if count < EACH // 10} == {}
