"""Faults of one service's connections. They touch connections made from then on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orchestrator.virtual.faults.base import Fault
from orchestrator.virtual.tampering import Tampering

if TYPE_CHECKING:
    from orchestrator.virtual.faults.base import Stage, Undo

AFC: Final = "com.apple.afc"


def _tamper(stage: Stage, service: str, tampering: Tampering) -> Undo:
    stage.require_service(service)
    table = stage.phone.settings.tampering
    table[service] = tampering

    def restore() -> None:
        if table.get(service) is tampering:
            del table[service]

    return restore


class Mute(Fault, frozen=True, tag="mute"):
    """Make a service accept connections and never say a word."""

    service: str

    async def begin(self, stage: Stage) -> Undo | None:  # noqa: D102 - of the base
        stage.require_service(self.service)
        muted = stage.phone.settings.muted
        muted.add(self.service)
        return lambda: muted.discard(self.service)


class Slam(Fault, frozen=True, tag="slam"):
    """Make a service close each connection after it has sent `at_byte` bytes."""

    service: str
    at_byte: int = 0

    async def begin(self, stage: Stage) -> Undo | None:  # noqa: D102
        return _tamper(stage, self.service, Tampering(slam_at_byte=self.at_byte))


class Stall(Fault, frozen=True, tag="stall"):
    """Make a service (AFC unless named) fall silent after `at_byte` bytes; it stays connected."""

    service: str = AFC
    at_byte: int = 0

    async def begin(self, stage: Stage) -> Undo | None:  # noqa: D102
        return _tamper(stage, self.service, Tampering(stall_at_byte=self.at_byte))


class Slow(Fault, frozen=True, tag="slow"):
    """Make a service (AFC unless named) carry `bytes_per_s` each way."""

    service: str = AFC
    bytes_per_s: float = 65_536.0

    async def begin(self, stage: Stage) -> Undo | None:  # noqa: D102
        return _tamper(stage, self.service, Tampering(bytes_per_s=max(1.0, self.bytes_per_s)))


class IdleDrop(Fault, frozen=True, tag="idle_drop"):
    """Make a service (AFC unless named) drop a connection without a byte for `idle_s`."""

    service: str = AFC
    idle_s: float = 10.0

    async def begin(self, stage: Stage) -> Undo | None:  # noqa: D102
        return _tamper(stage, self.service, Tampering(idle_s=self.idle_s))


class Junk(Fault, frozen=True, tag="junk"):
    """Make a service send random bytes in place of its own, from `from_byte` on."""

    service: str
    from_byte: int = 0

    async def begin(self, stage: Stage) -> Undo | None:  # noqa: D102
        junk = Tampering(junk_from_byte=self.from_byte, seed=stage.seed)
        return _tamper(stage, self.service, junk)


class Oversized(Fault, frozen=True, tag="oversized"):
    """Make a service announce a reply of 2 GB."""

    service: str

    async def begin(self, stage: Stage) -> Undo | None:  # noqa: D102
        return _tamper(stage, self.service, Tampering(oversized=True))


class TelemetryRefused(Fault, frozen=True, tag="telemetry_refused"):
    """Refuse connections to the ports of apps."""

    async def begin(self, stage: Stage) -> Undo | None:  # noqa: D102
        settings = stage.phone.settings
        settings.apps_listen = False
        stage.phone.drop_app_connections()

        def restore() -> None:
            settings.apps_listen = True

        return restore
