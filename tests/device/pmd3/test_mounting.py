"""The developer disk image on a virtual phone that lost it; download and signature are made up."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from pymobiledevice3.exceptions import TSSError
from pymobiledevice3.services.mobile_image_mounter import MobileImageMounterService

from orchestrator.domain.deadline import Deadline
from orchestrator.domain.errors import DeviceError
from orchestrator.domain.outcome import Cause

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pymobiledevice3.lockdown import UsbmuxLockdownClient

    from orchestrator.device.pmd3.link import Pmd3Link
    from tests.device.farm import FarmProcess

LIMIT_S = 20.0
MODULE = "orchestrator.device.pmd3.mounting"


@pytest.fixture
def unmounted(farm: FarmProcess, link: Pmd3Link) -> Iterator[None]:
    farm.order("set", link.phone.udid, "image_mounted", json.dumps(False))
    yield
    farm.order("set", link.phone.udid, "image_mounted", json.dumps(True))


async def sign_and_mount(client: UsbmuxLockdownClient) -> None:
    """What the library does with an image that Apple has signed."""
    async with MobileImageMounterService(client) as mounter:
        await mounter.upload_image("Personalized", b"image", b"ticket")
        await mounter.mount_image("Personalized", b"ticket")


async def test_an_image_is_uploaded_and_mounted_and_a_second_time_is_no_error(
    link: Pmd3Link, unmounted: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{MODULE}.fetch_personalized_ddi", lambda: None)
    monkeypatch.setattr(f"{MODULE}.auto_mount_personalized", sign_and_mount)
    assert (await link.facts(deadline=Deadline.after(LIMIT_S))).ddi_mounted is False
    for _ in range(2):
        await link.mount_image(deadline=Deadline.after(LIMIT_S))
    assert (await link.facts(deadline=Deadline.after(LIMIT_S))).ddi_mounted is True


async def test_a_host_without_a_network_is_named_as_such(
    link: Pmd3Link, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fetch() -> None:
        raise OSError("cannot resolve github.com")

    monkeypatch.setattr(f"{MODULE}.fetch_personalized_ddi", fetch)
    with pytest.raises(DeviceError, match=r"could not be downloaded: cannot resolve") as caught:
        await link.mount_image(deadline=Deadline.after(LIMIT_S))
    assert (caught.value.layer, caught.value.cause) == ("host", Cause.NOT_READY)


async def test_a_signature_that_apple_refuses_is_named_as_such(
    link: Pmd3Link, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(_: UsbmuxLockdownClient) -> None:
        raise TSSError("STATUS=94")

    monkeypatch.setattr(f"{MODULE}.fetch_personalized_ddi", lambda: None)
    monkeypatch.setattr(f"{MODULE}.auto_mount_personalized", refuse)
    with pytest.raises(DeviceError, match="signing server did not sign"):
        await link.mount_image(deadline=Deadline.after(LIMIT_S))
