"""Holds a phone at the gate until it is fit, where waiting can make it so."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import anyio

from orchestrator.domain.deadline import Deadline
from orchestrator.domain.errors import DeviceError
from orchestrator.runlog.files import write_document
from orchestrator.soak.gate import Reason, health_document, refusal
from orchestrator.soak.gathering import FACTS_LIMIT_S

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.device.facts import PhoneFacts
    from orchestrator.device.link import PhoneLink
    from orchestrator.soak.gate import GateLimits, Refusal
    from orchestrator.soak.run_directory import Remark

POLL_S: Final = 5.0
MOUNT_LIMIT_S: Final = 180.0  # the first on a host downloads the image


class GateRefusedError(DeviceError):
    """The phone is not fit: a person must see to it, another attempt would not help."""


@dataclass(frozen=True, slots=True)
class Gatekeeper:
    """Reads a phone's facts until they allow a start."""

    link: PhoneLink
    limits: GateLimits
    health: Path  # `health.json`, replaced by every reading
    remark: Remark
    poll_s: float = POLL_S

    async def admit(self) -> PhoneFacts:
        """Return the facts of a phone that may start.

        Raises:
            GateRefusedError: If it may not, or not in time.
            DeviceError: If it does not answer.
        """
        began_s, told, mounted = time.monotonic(), None, False
        while True:
            facts = await self.link.facts(deadline=Deadline.after(FACTS_LIMIT_S))
            problem = refusal(facts, self.limits)
            write_document(self.health, health_document(facts, problem, time.time()))
            if problem is None:
                return facts
            if problem.reason is Reason.DDI_NOT_MOUNTED and not mounted and facts.virtual is None:
                mounted = True
                await self._mount(problem)
                continue
            if time.monotonic() - began_s >= problem.wait_s:
                raise self._error(problem)
            if problem.reason is not told:
                told = problem.reason
                self.remark("gate_waits", reason=problem.reason.value, facts=problem.facts)
            await anyio.sleep(self.poll_s)

    async def _mount(self, problem: Refusal) -> None:
        """Mount the image once; what keeps it from that is the reason against a start.

        Virtual phones get none: theirs is unmounted on order, and Apple signs nothing for them.
        """
        try:
            await self.link.mount_image(deadline=Deadline.after(MOUNT_LIMIT_S))
        except DeviceError as error:
            reason = f"{problem.facts}: {error.facts}"
            alias = self.link.phone.alias
            raise GateRefusedError(
                alias, "gate", "prepare", reason, cause=error.cause, remedy=error.remedy
            ) from error
        self.remark("image_mounted", reason=problem.reason.value)

    def _error(self, problem: Refusal) -> GateRefusedError:
        waited = f", waited {problem.wait_s:g} s for it" if problem.wait_s else ""
        return GateRefusedError(
            self.link.phone.alias,
            "gate",
            "prepare",
            problem.facts + waited,
            cause=problem.cause,
            remedy=problem.remedy,
        )
