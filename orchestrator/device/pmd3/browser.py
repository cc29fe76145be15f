"""Reads usbmux lists and identities for `discovery`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pymobiledevice3 import usbmux

from orchestrator.device.discovery import Attachment, Identity, UsbmuxSource, normal_udid
from orchestrator.device.keeper.lines import printable
from orchestrator.device.pmd3.calls import translated
from orchestrator.device.pmd3.plain import library_address, plain_lockdown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.domain.deadline import Deadline

VIRTUAL_DOMAIN: Final = "dev.fleet.virtual"
MAX_TEXT_CHARS: Final = 256


class UsbmuxBrowser:
    """The `Browser` that talks to usbmuxds."""

    async def attachments(
        self, source: UsbmuxSource, *, deadline: Deadline
    ) -> Sequence[Attachment]:
        """Return what one source lists."""
        with translated(source.name, "usbmux", "discover", deadline):
            devices = await usbmux.list_devices(library_address(source.address))
            return [
                Attachment(normal_udid(device.serial), source, device.devid, device.is_usb)
                for device in devices
            ]

    async def identity(self, attachment: Attachment, *, deadline: Deadline) -> Identity:
        """Ask one phone who it is, without a session: that works before pairing too."""
        address = attachment.source.address
        kind = "USB" if attachment.is_usb else "Network"
        device = usbmux.MuxDevice(attachment.mux_id, attachment.udid, kind)
        with translated(attachment.udid, "lockdown", "discover", deadline):
            async with plain_lockdown(device, address) as lockdown:
                values = await lockdown.values()
                virtual = await lockdown.values(VIRTUAL_DOMAIN)
            return Identity(
                name=text_of(values, "DeviceName"),
                product_type=text_of(values, "ProductType"),
                os=text_of(values, "ProductVersion"),
                build=text_of(values, "BuildVersion"),
                virtual=virtual.get("Virtual") is True,
            )


def text_of(values: dict[str, object], key: str) -> str:
    """Return one text value, cleaned; empty if the phone did not send one."""
    value = values.get(key)
    return printable(value)[:MAX_TEXT_CHARS] if isinstance(value, str) else ""
