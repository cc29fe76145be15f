from __future__ import annotations

import pytest

from orchestrator.device.keeper.lease import BEREFT_LIMIT_S, CLAIM_LIMIT_S, Lease, LeasePhase

HELD = Lease.starting(5.0, 0.0).attached()


def test_a_keeper_that_nobody_attaches_to_ends_soon() -> None:
    lease = Lease.starting(1800.0, 100.0)
    assert lease.at(100.0 + CLAIM_LIMIT_S - 1).phase is LeasePhase.UNCLAIMED
    assert lease.at(100.0 + CLAIM_LIMIT_S).phase is LeasePhase.ENDED


def test_a_held_lease_never_lapses() -> None:
    lease = Lease.starting(5.0, 0.0).attached()
    assert lease.at(1e9).phase is LeasePhase.HELD
    assert lease.wait_s(1e9) == float("inf")


def test_the_clock_runs_from_the_moment_the_client_is_gone() -> None:
    lease = Lease.starting(5.0, 0.0).attached().detached(100.0)
    assert lease.wait_s(101.0) == 4.0
    assert lease.at(104.9).phase is LeasePhase.LAPSING
    assert lease.at(105.0).phase is LeasePhase.ENDED


def test_a_new_client_stops_the_clock_and_its_leaving_starts_it_anew() -> None:
    lease = Lease.starting(5.0, 0.0).attached().detached(100.0).attached()
    assert lease.at(200.0).phase is LeasePhase.HELD
    assert lease.detached(200.0).at(204.0).phase is LeasePhase.LAPSING


def test_closing_ends_it_from_every_state() -> None:
    start = Lease.starting(5.0, 0.0)
    for lease in (start, start.attached(), start.attached().detached(1.0)):
        assert lease.closed().phase is LeasePhase.ENDED


@pytest.mark.parametrize(
    "lease", [Lease.starting(5.0, 0.0).attached(), Lease.starting(5.0, 0.0).closed()]
)
def test_a_second_client_and_a_late_one_are_impossible(lease: Lease) -> None:
    with pytest.raises(ValueError, match=lease.phase.value):
        lease.attached()


def test_no_client_cannot_leave() -> None:
    with pytest.raises(ValueError, match="unclaimed"):
        Lease.starting(5.0, 0.0).detached(1.0)


def test_without_a_client_and_without_the_phone_it_ends_soon() -> None:
    lapsing = Lease.starting(1800.0, 0.0).attached().detached(100.0)
    assert lapsing.bereft(200.0).wait_s(200.0) == BEREFT_LIMIT_S
    assert lapsing.bereft(1899.0).wait_s(1899.0) == 1.0  # never longer than it was
    assert HELD.bereft(10.0) == HELD  # the client decides
