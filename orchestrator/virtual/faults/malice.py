"""Faults of a phone that means harm: what it says of itself, its files and its app."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.virtual.faults.base import Fault
from orchestrator.virtual.services.afc.lies import AfcLies
from orchestrator.virtual.services.impostor import Imposture, impostor

if TYPE_CHECKING:
    from orchestrator.virtual.faults.base import Stage, Undo


class HostileName(Fault, frozen=True, tag="hostile_name"):
    """Give the phone another name: any text, control characters and paths among it."""

    name: str

    async def begin(self, stage: Stage) -> Undo | None:  # noqa: D102 - of the base
        settings = stage.phone.settings
        usual, settings.name = settings.name, self.name

        def restore() -> None:
            settings.name = usual

        return restore


class HostileFiles(Fault, frozen=True, tag="hostile_files"):
    """Lie over AFC: `names` in every folder, false sizes, a tree without end, a huge reply.

    Attributes:
        names: May hold anything but NUL: slashes, `..`, control characters.
        claims_bytes: What these files say they have.
        sends_bytes: What they have.
        endless: Whether every folder holds 400 more.
        reply_bytes: Size of the reply to any listing; None for what is listed.
    """

    names: tuple[str, ...] = ()
    claims_bytes: int = 1000
    sends_bytes: int = 1000
    endless: bool = False
    reply_bytes: int | None = None

    async def begin(self, stage: Stage) -> Undo | None:  # noqa: D102
        settings = stage.phone.settings
        settings.afc_lies = AfcLies(
            self.names, self.claims_bytes, self.sends_bytes, self.endless, self.reply_bytes
        )

        def restore() -> None:
            settings.afc_lies = None

        return restore


class HostileApp(Fault, frozen=True, tag="hostile_app"):
    """Answer on the ports of apps with `noise`, `one_line` without end, or invented `records`."""

    sends: Imposture

    async def begin(self, stage: Stage) -> Undo | None:  # noqa: D102
        settings = stage.phone.settings
        settings.impostor = impostor(self.sends, stage.seed)
        stage.phone.drop_app_connections()

        def restore() -> None:
            settings.impostor = None
            stage.phone.drop_app_connections()

        return restore
