"""The scripted phone keeps the protocols, and importing the protocols costs no library."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from orchestrator.device.events import AppExited
from orchestrator.domain.deadline import Deadline
from tests.device.scripted import ScriptedLink, ScriptedSession

if TYPE_CHECKING:
    from orchestrator.device.link import DeveloperSession, PhoneLink


async def test_a_scripted_phone_is_a_phone_link() -> None:
    link: PhoneLink = ScriptedLink()
    session: DeveloperSession = await link.developer(deadline=Deadline.after(1))
    pid = await session.launch("dev.app", {}, deadline=Deadline.after(1))
    await session.kill(pid, deadline=Deadline.after(1))
    async for event in session.events():
        assert event == AppExited(pid, None, 9)
        break
    await session.aclose()
    assert isinstance(session, ScriptedSession)
    assert session.script.calls == ["launch", "kill", "aclose"]


def test_protocols_selection_and_discovery_load_no_device_library() -> None:
    program = (
        "import sys, orchestrator.device.link, orchestrator.device.selection,"
        " orchestrator.device.discovery, orchestrator.device.keeper.broker;"
        "print('pymobiledevice3' in sys.modules)"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert answer.stdout == b"False\n"
