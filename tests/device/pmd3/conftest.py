"""One farm and one keeper host for all tests here: making keys and importing take long."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from orchestrator.device.discovery import Discovery, UsbmuxSource, discover
from orchestrator.device.keeper.broker import KeeperBroker
from orchestrator.device.keeper.start import KeeperStarter
from orchestrator.device.pmd3.browser import UsbmuxBrowser
from orchestrator.device.pmd3.link import Pmd3Link
from orchestrator.domain.deadline import Deadline
from tests.device.farm import BUNDLE_ID, FarmProcess, farm_process, make_ipa

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session", autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The client library keeps pair records at home; keepers inherit this one."""
    folder = tmp_path_factory.mktemp("home")
    kept = {name: os.environ.get(name) for name in ("HOME", "XDG_DATA_HOME")}
    os.environ.update(HOME=str(folder), XDG_DATA_HOME=str(folder / "data"))
    yield
    for name, value in kept.items():
        if value is None:
            del os.environ[name]
        else:
            os.environ[name] = value


@pytest.fixture(scope="session")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FarmProcess]:
    with farm_process(tmp_path_factory.mktemp("farm"), 3) as farm:
        yield farm


@pytest.fixture(scope="session")
def source(farm: FarmProcess) -> UsbmuxSource:
    return UsbmuxSource("farm", farm.address)


@pytest.fixture(scope="session")
async def found(source: UsbmuxSource) -> Discovery:
    return await discover([source], UsbmuxBrowser(), deadline=Deadline.after(20))


@pytest.fixture(scope="session")
async def starter() -> AsyncIterator[KeeperStarter]:
    async with KeeperStarter() as starter:
        yield starter


@pytest.fixture
def keepers(tmp_path: Path) -> Path:
    """Folder of the keepers' folders."""
    return tmp_path / "k"


@pytest.fixture
def link(found: Discovery, source: UsbmuxSource, starter: KeeperStarter, keepers: Path) -> Pmd3Link:
    """The first phone; nothing is installed yet when the session begins."""
    broker = KeeperBroker(starter, root=keepers, die_with_parent=True)
    return Pmd3Link(found.phones[0], source.address, broker)


@pytest.fixture(scope="session")
async def installed(
    found: Discovery,
    source: UsbmuxSource,
    starter: KeeperStarter,
    tmp_path_factory: pytest.TempPathFactory,
) -> str:
    """The small app, on all phones."""
    ipa = make_ipa(tmp_path_factory.mktemp("ipa") / "tiny.ipa")
    for phone in found.phones:
        link = Pmd3Link(phone, source.address, KeeperBroker(starter))
        await link.install(ipa, BUNDLE_ID, deadline=Deadline.after(20))
    return BUNDLE_ID
