"""The last rungs of a phone's recovery: the power of its hub's port, and a reboot.

Both are opt-in. A port is switched by the lab's own command, since every hub has another; a reboot
is for a phone that answers and still ends one session after the other.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import anyio

from orchestrator.domain.deadline import Deadline
from orchestrator.domain.errors import DeviceError

if TYPE_CHECKING:
    from orchestrator.device.facts import PhoneFacts
    from orchestrator.device.link import PhoneLink
    from orchestrator.runlog.documents import PlannedPhone

POWER_LIMIT_S: Final = 60.0
RESTART_LIMIT_S: Final = 20.0  # for the request
READY_LIMIT_S: Final = 240.0  # from the request to a phone that can soak
READY_POLL_S: Final = 1.0
ANSWER_LIMIT_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class RecoveryPolicy:
    """What a lab allows."""

    hub_power_command: tuple[str, ...] = ()  # run without a shell; `{udid}`, `{alias}` are filled
    reboot: bool = False
    never_reboot: frozenset[str] = frozenset()  # aliases or UDIDs

    def may_reboot(self, phone: PlannedPhone) -> bool:
        """Return whether this phone may be restarted."""
        return self.reboot and not self.never_reboot & {phone.alias, phone.udid}

    def power_command(self, phone: PlannedPhone) -> list[str]:
        """Return the command for one phone; names and UDIDs are data, whatever they hold."""
        known = {"{udid}": phone.udid, "{alias}": phone.alias}
        return [_filled(word, known) for word in self.hub_power_command]


def _filled(word: str, known: dict[str, str]) -> str:
    for name, value in known.items():
        word = word.replace(name, value)
    return word


async def switch_power(policy: RecoveryPolicy, phone: PlannedPhone) -> str | None:
    """Run the lab's command for the phone's port; return why it failed, or None.

    It is told `FLEET_UDID` and `FLEET_ALIAS` as well, and has 60 s.
    """
    environment = {**os.environ, "FLEET_UDID": phone.udid, "FLEET_ALIAS": phone.alias}
    try:
        with anyio.fail_after(POWER_LIMIT_S):
            done = await anyio.run_process(
                policy.power_command(phone),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=environment,
                check=False,
            )
    except TimeoutError:
        return f"the hub's command took over {POWER_LIMIT_S:g} s"
    except OSError as error:
        return f"the hub's command cannot run: {error.strerror or error}"
    return f"the hub's command ended with {done.returncode}" if done.returncode else None


async def restart(link: PhoneLink, stop: anyio.Event) -> str | None:
    """Restart a phone and wait until it could soak; return why it cannot, or None."""
    try:
        before = await link.facts(deadline=Deadline.after(ANSWER_LIMIT_S))
        await link.restart(deadline=Deadline.after(RESTART_LIMIT_S))
    except DeviceError as error:
        return str(error)
    reason: str | None = "it did not go down"
    deadline, went_down = Deadline.after(READY_LIMIT_S), False
    while not deadline.passed and not stop.is_set():
        try:
            facts = await link.facts(deadline=Deadline.after(ANSWER_LIMIT_S))
        except DeviceError as error:
            went_down, reason = True, str(error)
        else:
            if went_down:
                reason = unready(facts, before)
                if reason is None:
                    return None
        with anyio.move_on_after(READY_POLL_S):
            await stop.wait()
    return f"the phone was not ready within {READY_LIMIT_S:g} s of its restart: {reason}"


def unready(facts: PhoneFacts, before: PhoneFacts) -> str | None:
    """Return what a restarted phone lacks that it had before, or None: pure.

    The developer image goes with a boot: where nothing mounts it again the phone cannot soak.
    """
    if facts.locked:
        return "it is locked"
    if before.developer_mode and not facts.developer_mode:
        return "Developer Mode is off"
    if before.ddi_mounted and not facts.ddi_mounted:
        return "the developer image is not mounted"
    return None
