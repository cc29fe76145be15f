"""Remote service discovery: the table of services that a phone offers inside its tunnel.

The same table can stand on loopback ports, which is what a running tunneld amounts to.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from orchestrator.virtual.wire import ProtocolError
from orchestrator.virtual.xpc.codec import Unsigned
from orchestrator.virtual.xpc.peer import XpcPeer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from orchestrator.virtual.identity import Identity
    from orchestrator.virtual.wire import Endpoint, Service, Stream
    from orchestrator.virtual.xpc.codec import Message

_MESSAGING_VERSION: Final = 7
_XPC_FLAGS: Final = 0x0100000000000006
_ENTITLEMENT: Final = "com.apple.mobile.lockdown.remote.trusted"


@dataclass(frozen=True, slots=True)
class RemoteService:
    """One entry of the table."""

    endpoint: Endpoint
    properties: dict[str, Any]
    is_developer: bool = False  # there only in developer mode with the image mounted


class ServiceDirectory:
    """Answers a host's handshake with the table."""

    def __init__(
        self,
        identity: Identity,
        services: Callable[[], dict[str, RemoteService]],
        port_of: Callable[[str], Awaitable[int]],
        booted_at_s: Callable[[], float],
    ) -> None:
        """Make the directory of one phone.

        Args:
            identity: Who the phone is.
            services: What it offers now, by name.
            port_of: Where a service listens; it may begin to when it is asked for.
            booted_at_s: When it started last, Unix time.
        """
        self._identity, self._services, self._port_of = identity, services, port_of
        self._booted_at_s = booted_at_s

    async def serve(self, stream: Stream) -> None:
        """Serve one connection until the host leaves."""
        await XpcPeer(stream, self._answer).run()

    async def _answer(self, peer: XpcPeer, message: Message) -> None:
        body = message.body
        if isinstance(body, dict) and body.get("MessageType") == "Handshake":
            await peer.send(await self._handshake())

    async def _handshake(self) -> dict[str, Any]:
        table = {
            name: {
                "Port": str(await self._port_of(name)),
                "Entitlement": _ENTITLEMENT,
                "Properties": service.properties,
            }
            for name, service in self._services().items()
        }
        return {
            "MessageType": "Handshake",
            "MessagingProtocolVersion": Unsigned(_MESSAGING_VERSION),
            "UUID": uuid.uuid5(uuid.NAMESPACE_OID, self._identity.udid),
            "Properties": self._properties(),
            "Services": table,
        }

    def _boot_session(self) -> uuid.UUID:
        """Return what is the same from one start of the phone to the next."""
        return uuid.uuid5(uuid.NAMESPACE_OID, f"{self._identity.udid} {self._booted_at_s()}")

    def _properties(self) -> dict[str, Any]:
        identity = self._identity
        return {
            "AppleInternal": False,
            "BootSessionUUID": str(self._boot_session()),
            "BuildVersion": identity.build,
            "ChipID": Unsigned(identity.chip_id),
            "DeviceClass": "iPhone",
            "HardwareModel": identity.model.hardware_model,
            "OSInstallEnvironment": False,
            "OSVersion": identity.os,
            "ProductType": identity.model.product_type,
            "RemoteXPCVersionFlags": Unsigned(_XPC_FLAGS),
            "SerialNumber": identity.serial_number,
            "UniqueChipID": Unsigned(identity.ecid),
            "UniqueDeviceID": identity.udid,
        }


def checked_in(service: Service) -> Service:
    """Return a classic service as the tunnel offers it: after a check-in, without TLS."""

    async def serve(stream: Stream) -> None:
        request = await stream.read_plist()
        if request.get("Request") != "RSDCheckin":
            raise ProtocolError("a host that does not check in")
        await stream.send_plist({"Request": "RSDCheckin"})
        await stream.send_plist({"Request": "StartService"})
        await service(stream)

    return serve
