"""Kills a healthy app, to see what the host is told of a kill that is ours."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Final

import anyio

from orchestrator.device.events import AppExited, SessionLost
from orchestrator.domain.deadline import Deadline
from orchestrator.soak.following import APP_PORT, CALL_LIMIT_S
from orchestrator.soak.rejoining import DEVELOPER_LIMIT_S

if TYPE_CHECKING:
    from orchestrator.device.link import DeveloperSession, PhoneLink

EXIT_LIMIT_S: Final = 20.0


async def kill_own_app(link: PhoneLink, bundle_id: str) -> str | None:
    """Launch the installed app, kill it, and return what its exit event said.

    Returns:
        As `exit_words` puts it; None if no event came within 20 s.

    Raises:
        DeviceError: If the phone does not launch or kill it.
    """
    session = await link.developer(deadline=Deadline.after(DEVELOPER_LIMIT_S))
    try:
        environment = {"FLEET_TOKEN": secrets.token_hex(16), "FLEET_PORT": str(APP_PORT)}
        deadline = Deadline.after(DEVELOPER_LIMIT_S)
        pid = await session.launch(bundle_id, environment, deadline=deadline)
        await session.kill(pid, deadline=Deadline.after(CALL_LIMIT_S))
        return await _exit_of(session, pid)
    finally:
        with anyio.CancelScope(shield=True):
            await session.aclose()


async def _exit_of(session: DeveloperSession, pid: int) -> str | None:
    with anyio.move_on_after(EXIT_LIMIT_S):
        async for event in session.events():
            match event:
                case AppExited(gone, exit_code, signal) if gone == pid:
                    return exit_words(exit_code, signal)
                case SessionLost():
                    return None
                case _:
                    pass
    return None


def exit_words(exit_code: int | None, signal: int | None) -> str:
    """Return an exit event in words that compare."""
    if signal is not None:
        return f"signal {signal}"
    return "no code" if exit_code is None else f"exit code {exit_code}"
