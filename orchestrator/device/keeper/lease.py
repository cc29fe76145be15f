"""How long a keeper lives without a client. Pure: time comes in, the next state goes out.

UNCLAIMED --attached--> HELD --detached--> LAPSING --attached--> HELD
UNCLAIMED, LAPSING --time passes--> ENDED;  any --closed--> ENDED
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

DEFAULT_LEASE_S: Final = 1800.0
# The client that had the keeper started attaches at once; if it died meanwhile, so do we.
CLAIM_LIMIT_S: Final = 30.0
# A lost session stays lost: what it saw is kept for a resume within twice the phone's grace.
BEREFT_LIMIT_S: Final = 60.0


class LeasePhase(StrEnum):
    """Where the lease stands."""

    UNCLAIMED = "unclaimed"  # started, nobody has attached yet
    HELD = "held"
    LAPSING = "lapsing"  # the client is gone, the clock runs
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Lease:
    """One state of a keeper's lease."""

    lease_s: float
    phase: LeasePhase
    ends_at_s: float | None  # monotonic; None while held

    @classmethod
    def starting(cls, lease_s: float, now_s: float) -> Lease:
        """Return the state of a keeper that has just started."""
        return cls(lease_s, LeasePhase.UNCLAIMED, now_s + min(lease_s, CLAIM_LIMIT_S))

    def attached(self) -> Lease:
        """A client has come.

        Raises:
            ValueError: If one is there already, or the keeper has ended; the server refuses the
                client in both cases before it asks.
        """
        if self.phase in (LeasePhase.HELD, LeasePhase.ENDED):
            raise ValueError(f"a client cannot attach to a lease that is {self.phase}")
        return replace(self, phase=LeasePhase.HELD, ends_at_s=None)

    def detached(self, now_s: float) -> Lease:
        """The client has gone without closing.

        Raises:
            ValueError: If there was none.
        """
        if self.phase is not LeasePhase.HELD:
            raise ValueError(f"no client can leave a lease that is {self.phase}")
        return replace(self, phase=LeasePhase.LAPSING, ends_at_s=now_s + self.lease_s)

    def bereft(self, now_s: float) -> Lease:
        """The phone is lost: without a client there is nothing to keep for long."""
        if self.phase is not LeasePhase.LAPSING or self.ends_at_s is None:
            return self
        return replace(self, ends_at_s=min(self.ends_at_s, now_s + BEREFT_LIMIT_S))

    def closed(self) -> Lease:
        """The session is over: the client said so, or the parent died."""
        return replace(self, phase=LeasePhase.ENDED, ends_at_s=None)

    def at(self, now_s: float) -> Lease:
        """Return the state at a time: ended, if its time has passed."""
        passed = self.ends_at_s is not None and now_s >= self.ends_at_s
        return self.closed() if passed else self

    def wait_s(self, now_s: float) -> float:
        """Return the seconds until this state ends by itself; infinite while held."""
        return float("inf") if self.ends_at_s is None else max(0.0, self.ends_at_s - now_s)
