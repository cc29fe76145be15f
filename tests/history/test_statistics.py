"""The test behind a comparison keeps its promise on simulated histories.

Samples within a run follow one another (5 % noise, lag-1 correlation 0.98: a phone's heat stays for
a minute), so a run's median still moves from run to run.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.signal import lfilter
from scipy.stats import ttest_ind

from orchestrator.history.comparison import FALSE_ALARM
from orchestrator.history.statistics import difference

PAIRS = 2000
NOISE = 0.05
SAMPLES_PER_RUN = 600
MIN_LOSS_PERCENT = 5.0

Values = NDArray[np.float64]


def correlated(rng: np.random.Generator, shape: tuple[int, ...], correlation: float) -> Values:
    """Return AR(1) noise of standard deviation `NOISE` along the last axis."""
    shocks = rng.normal(size=shape) * NOISE * np.sqrt(1 - correlation**2)
    shocks[..., 0] = rng.normal(size=shape[:-1]) * NOISE
    return np.asarray(lfilter([1.0], [1.0, -correlation], shocks, axis=-1))


def medians(rng: np.random.Generator, runs: int, loss: float) -> list[float]:
    samples = 200 * (1 - loss) * (1 + correlated(rng, (runs, SAMPLES_PER_RUN), 0.98))
    return [float(value) for value in np.median(samples, axis=1)]


def correlated_runs(rng: np.random.Generator, runs: int, loss: float) -> list[float]:
    """Return run-level numbers that follow one another from night to night."""
    return [float(v) for v in 200 * (1 - loss) * (1 + correlated(rng, (1, runs), 0.3))[0]]


def alarm(candidate: list[float], base: list[float]) -> bool:
    found = difference(candidate, base, alpha=FALSE_ALARM)
    return found is not None and found.p_lower < FALSE_ALARM and found.percent <= -MIN_LOSS_PERCENT


def rate(sample: object, candidate_runs: int, base_runs: int, *, loss: float, seed: int) -> float:
    assert callable(sample)
    rng = np.random.default_rng(seed)
    alarms = sum(
        alarm(sample(rng, candidate_runs, loss), sample(rng, base_runs, 0.0)) for _ in range(PAIRS)
    )
    return alarms / PAIRS


@pytest.mark.parametrize(
    ("sample", "candidate_runs", "base_runs"),
    [(medians, 1, 15), (medians, 3, 10), (correlated_runs, 30, 30)],
    ids=["one run against 15", "3 runs against 10", "30 nights against 30 that correlate"],
)
def test_a_ten_percent_loss_is_found_and_noise_is_not(
    sample: object, candidate_runs: int, base_runs: int, capsys: pytest.CaptureFixture[str]
) -> None:
    power = rate(sample, candidate_runs, base_runs, loss=0.10, seed=1)
    false_alarms = rate(sample, candidate_runs, base_runs, loss=0.0, seed=2)
    with capsys.disabled():
        print(
            f"\n{getattr(sample, '__name__', '')}, {candidate_runs} runs against {base_runs}, "
            f"{PAIRS} pairs: power {power:.4f}, false alarms {false_alarms:.4f}"
        )
    assert power >= 0.95
    assert false_alarms <= 0.01


def test_nights_that_correlate_cost_short_histories_some_false_alarms(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The known limit that docs/history.md states: 20 runs cannot show how they correlate."""
    false_alarms = rate(correlated_runs, 10, 10, loss=0.0, seed=4)
    with capsys.disabled():
        print(f"\n10 correlated nights against 10, {PAIRS} pairs: false alarms {false_alarms:.4f}")
    assert 0.01 < false_alarms <= 0.03


def test_samples_within_a_run_would_cry_wolf() -> None:
    rng = np.random.default_rng(3)
    wrong = 0
    for _ in range(200):
        one, other = 200 * (1 + correlated(rng, (2, SAMPLES_PER_RUN), 0.98))
        wrong += ttest_ind(one, other, alternative="less").pvalue < FALSE_ALARM
    assert wrong / 200 > 0.2


def test_one_run_against_one_knows_no_noise() -> None:
    assert difference([180.0], [200.0], alpha=0.01) is None


def test_other_runs_of_the_same_kind_tell_the_noise_of_one_against_one() -> None:
    others = [[100.0, 101.0, 99.0], [150.0, 149.0, 151.0]]
    found = difference([180.0], [200.0], others, alpha=0.01)
    assert found is not None
    assert found.noise_percent == pytest.approx(0.85, abs=0.05)
    assert found.p_lower < 0.001


def test_the_difference_is_percent_of_the_base() -> None:
    found = difference([180.0, 181.0, 179.0], [200.0, 201.0, 199.0], alpha=0.01)
    assert found is not None
    assert found.percent == pytest.approx(-10.0, abs=0.01)
    assert found.low_percent < -10.0 < found.high_percent
    assert found.effect_size < -5


def test_equal_values_are_no_proof_of_no_noise() -> None:
    found = difference([200.0] * 3, [200.0] * 3, alpha=0.01)
    assert found is not None
    assert found.p_lower == pytest.approx(0.5)


def test_correlated_runs_count_for_fewer() -> None:
    steady = [200.0 + (place // 6 % 2) for place in range(48)]
    jumping = [200.0 + (place % 2) for place in range(48)]
    slow = difference(steady, steady, alpha=0.01)
    quick = difference(jumping, jumping, alpha=0.01)
    assert slow is not None
    assert quick is not None
    assert slow.freedom < quick.freedom / 2
    assert slow.detectable_percent > quick.detectable_percent
