"""Mounts the personalised developer disk image, which a phone forgets at every boot.

The library downloads the image once per host and has it signed by Apple for this one phone.
Written from the library's source: no real phone was ever given an image by this project.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio.to_thread
from pymobiledevice3.exceptions import AlreadyMountedError, PyMobileDevice3Exception
from pymobiledevice3.services.mobile_image_mounter import (
    CRYPTEX_IMAGE_MIN_VERSION,
    auto_mount_personalized,
    fetch_personalized_ddi,
)

from orchestrator.domain.errors import DeviceError
from orchestrator.domain.iphone import os_version
from orchestrator.domain.outcome import Cause

if TYPE_CHECKING:
    from pymobiledevice3.lockdown import UsbmuxLockdownClient


class ImageUnavailableError(DeviceError):
    """The image could not be brought to this host."""

    def __init__(self, alias: str, facts: str) -> None:
        super().__init__(
            alias,
            "host",
            "mount",
            f"the developer disk image could not be downloaded: {facts}",
            cause=Cause.NOT_READY,
            remedy="Let this host reach the internet, or open Xcode once with the phone attached",
        )


async def mount_image(client: UsbmuxLockdownClient, alias: str) -> None:
    """Mount the image; one that is mounted already is as good.

    Raises:
        ImageUnavailableError: If it is not on this host and cannot be had.
        PyMobileDevice3Exception: If the phone, or Apple's signing server, refuses.
    """
    if os_version(client.product_version) < os_version(str(CRYPTEX_IMAGE_MIN_VERSION)):
        try:
            # Before the phone is asked, and in a thread: the download blocks.
            await anyio.to_thread.run_sync(fetch_personalized_ddi)
        except (OSError, PyMobileDevice3Exception) as error:  # requests' errors are OSErrors
            raise ImageUnavailableError(alias, str(error)[:200]) from error
    try:
        await auto_mount_personalized(client)
    except AlreadyMountedError:
        return
