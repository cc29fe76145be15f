"""Deals the tests out to the workers of `pytest -n 2`: whole files, all soaks to one worker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdist.scheduler import LoadFileScheduling

if TYPE_CHECKING:
    import pytest
    from xdist.remote import Producer
    from xdist.scheduler import Scheduling

# They share runs that take a minute, and soaks beside soaks would wait for the same two cores.
SOAKS = "tests/end_to_end/"


class BySoakOrFile(LoadFileScheduling):  # type: ignore[misc]  # it has no types
    """Keeps tests of one file together, and all soaks, for the fixtures that are dear to make."""

    def _split_scope(self, nodeid: str) -> str:
        return SOAKS if nodeid.startswith(SOAKS) else str(super()._split_scope(nodeid))


# Not `--dist loadgroup`: its marks are not seen by pytest 9 (xdist 3.8).
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling:
    """Return the scheduler of a run with several workers."""
    return BySoakOrFile(config, log)
