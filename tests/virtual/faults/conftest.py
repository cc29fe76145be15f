"""One way to begin a fault on the first phone of the farm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import pytest

from orchestrator.virtual.faults.vocabulary import fault_of

if TYPE_CHECKING:
    from orchestrator.virtual.farm import Farm

FIRST = "vp-01"


class Begin(Protocol):
    async def __call__(self, kind: str, **settings: object) -> None:
        """Begin a fault."""


@pytest.fixture
def begin(farm: Farm) -> Begin:
    """Begins a fault on the first phone."""

    async def begin(kind: str, **settings: object) -> None:
        await farm.faults.begin(FIRST, fault_of(kind, settings))

    return begin
