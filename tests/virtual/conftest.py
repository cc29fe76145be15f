"""A farm in the test's own event loop, for the real client library to talk to."""

from __future__ import annotations

import asyncio
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from pymobiledevice3.lockdown import UsbmuxLockdownClient, create_using_usbmux

from orchestrator.virtual.farm import Farm, ServeOptions, running_farm
from orchestrator.virtual.pki import Pki

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from orchestrator.virtual.phone import VirtualPhone


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own: the client library keeps pair records there."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "data"))
    return home


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the keys of a farm; making them takes longer than most tests."""
    folder = tmp_path_factory.mktemp("keys")
    Pki(folder)
    return folder


@pytest.fixture
def state(tmp_path: Path, keys: Path) -> Path:
    """The folder of a farm's state, keys included."""
    folder = tmp_path / "farm"
    shutil.copytree(keys, folder / "pki")
    return folder


def forgive_unretrieved(loop: asyncio.AbstractEventLoop) -> None:
    """Let the client library leave errors of connections that broke in futures nobody asks.

    A reader task of the library ends with the error of its connection. Whether somebody awaits it
    or the garbage collector finds it is chance, and says nothing about the phone; every other
    error of a callback still fails the test.
    """
    inherited = loop.get_exception_handler()

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if "exception was never retrieved" in context["message"]:
            return
        if inherited is None:
            loop.default_exception_handler(context)
        else:
            inherited(loop, context)

    loop.set_exception_handler(handle)


@pytest.fixture
async def farm(state: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Farm]:
    """Two phones: an iPhone 14 and an iPhone 16."""
    forgive_unretrieved(asyncio.get_running_loop())
    options = ServeOptions(
        phones=[("iPhone 14", "18.5"), ("iPhone 16", "18.6")], folder=state, report_delay_s=0.0
    )
    async with running_farm(options) as farm:
        farm.reboot_s = 0.05
        monkeypatch.setenv("USBMUXD_SOCKET_ADDRESS", farm.describe().usbmux)
        yield farm


@pytest.fixture
def phone(farm: Farm) -> VirtualPhone:
    """The first phone of the farm."""
    return farm.phones[0]


@pytest.fixture
async def lockdown(phone: VirtualPhone) -> AsyncIterator[UsbmuxLockdownClient]:
    """A paired session with the first phone."""
    client = await create_using_usbmux(serial=phone.udid, autopair=False)
    yield client
    await client.close()
