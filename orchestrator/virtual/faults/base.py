"""What a fault is: a value that knows how to begin and how it is undone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from orchestrator.domain.errors import UsageError

if TYPE_CHECKING:
    from orchestrator.virtual.farm import Farm
    from orchestrator.virtual.phone import VirtualPhone

Undo: TypeAlias = Callable[[], Awaitable[None] | None]


class FaultError(UsageError):
    """A fault that cannot be: an unknown kind, a wrong setting, a phone that is not there."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Where a fault happens."""

    farm: Farm
    phone: VirtualPhone
    seed: int  # for what the fault leaves to chance; follows from farm, phone, kind and ordinal

    def require_service(self, name: str) -> None:
        """Refuse a service that the phone does not have.

        Raises:
            FaultError: The message lists those it has.
        """
        known = self.phone.service_names()
        if name not in known:
            raise FaultError(f"{name!r} is no service of this phone; known: {', '.join(known)}")


class Fault(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind"):
    """One fault, without when and where. The docstring's first line is its help."""

    async def begin(self, stage: Stage) -> Undo | None:
        """Do it; return what undoes it, or None for what cannot be or need not be undone.

        Raises:
            FaultError: If the phone cannot have this fault.
        """
        raise NotImplementedError
