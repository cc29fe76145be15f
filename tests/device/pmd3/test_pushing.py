"""A package reaches a virtual phone once, through the real client."""

from __future__ import annotations

import asyncio
import gc
import hashlib
import random
from typing import TYPE_CHECKING

import pytest

from orchestrator.device.pushing import MARKER, Payload, package_payload, prune_models, push_once
from orchestrator.domain.deadline import Deadline
from orchestrator.domain.errors import DeviceError
from tests.device.farm import make_ipa
from tests.virtual.conftest import forgive_unretrieved

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from orchestrator.device.pmd3.link import Pmd3Link
    from tests.device.farm import FarmProcess

LIMIT_S = 20.0
TENTHS = range(1, 10)

# The client library leaves sockets and futures behind when a phone goes away.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


def model(seed: int, size_bytes: int = 300_000) -> Payload:
    """Return a model of two files of random bytes, the first a third of the whole."""
    content = random.Random(seed).randbytes(size_bytes)
    digest = hashlib.sha256(content).hexdigest()
    first, rest = content[: size_bytes // 3], content[size_bytes // 3 :]
    files: dict[str, bytes | Path] = {"m/Data/weight.bin": first, "m/Data/more.bin": rest}
    return Payload(f"Documents/models/{digest}", digest, files)


@pytest.fixture
async def plugged(farm: FarmProcess, link: Pmd3Link) -> AsyncIterator[str]:
    """The phone's UDID; it is plugged in again whatever a test did."""
    loop = asyncio.get_running_loop()
    handler = loop.get_exception_handler()
    forgive_unretrieved(loop)
    yield link.phone.udid
    farm.order("plug_in", link.phone.udid)
    gc.collect()  # what the library left is met here, and not in another test
    loop.set_exception_handler(handler)


async def arrived(link: Pmd3Link, bundle_id: str, payload: Payload) -> bool:
    """Read every file back and compare."""
    for name, source in payload.files.items():
        assert isinstance(source, bytes)
        place = f"{payload.folder}/{name}"
        theirs = await link.digest(bundle_id, place, deadline=Deadline.after(LIMIT_S))
        if theirs != hashlib.sha256(source).hexdigest():
            return False
    return True


async def test_a_package_is_sent_once_and_again_after_a_file_was_lost(
    link: Pmd3Link, installed: str, tmp_path: Path
) -> None:
    package = tmp_path / "decode.mlpackage"
    (package / "Data" / "weights").mkdir(parents=True)
    (package / "Manifest.json").write_text("{}")
    (package / "Data" / "weights" / "weight.bin").write_bytes(b"w" * 100)
    payload = await package_payload(package, "c0ffee")
    weight_file = f"{payload.folder}/decode.mlpackage/Data/weights/weight.bin"
    sent = []
    for _ in range(2):
        deadline = Deadline.after(LIMIT_S)
        sent.append(bool(await push_once(link, installed, payload, deadline=deadline)))
    await link.remove(installed, weight_file, deadline=Deadline.after(LIMIT_S))
    sent.append(bool(await push_once(link, installed, payload, deadline=Deadline.after(LIMIT_S))))
    assert sent == [True, False, True]
    there = await link.list(installed, payload.folder, deadline=Deadline.after(LIMIT_S))
    assert {file.path.rpartition("/")[2] for file in there} == {MARKER, "decode.mlpackage"}


@pytest.mark.deep
async def test_one_push_that_is_unplugged_at_every_tenth_goes_on_with_what_is_there(
    link: Pmd3Link, installed: str, farm: FarmProcess, plugged: str
) -> None:
    payload = model(1)
    for _ in TENTHS:
        farm.order("cut", plugged, "30000")
        with pytest.raises(DeviceError):
            await push_once(link, installed, payload, deadline=Deadline.after(LIMIT_S))
        farm.order("plug_in", plugged)
    pushed = await push_once(link, installed, payload, deadline=Deadline.after(LIMIT_S))
    # Nine tenths were there: one is sent, and the marker of some hundred bytes.
    assert 30_000 <= pushed.sent_bytes < 31_000
    assert pushed.resumed == ("m/Data/more.bin",)
    assert await arrived(link, installed, payload)
    assert not await push_once(link, installed, payload, deadline=Deadline.after(LIMIT_S))


@pytest.mark.parametrize(
    "tenth", [each if each == 4 else pytest.param(each, marks=pytest.mark.deep) for each in TENTHS]
)
async def test_a_push_that_is_unplugged_once_sends_the_rest_alone(
    link: Pmd3Link, installed: str, farm: FarmProcess, plugged: str, tenth: int
) -> None:
    payload = model(100 + tenth, 3_000_000)
    farm.order("cut", plugged, str(tenth * 300_000))
    with pytest.raises(DeviceError):
        await push_once(link, installed, payload, deadline=Deadline.after(LIMIT_S))
    farm.order("plug_in", plugged)
    pushed = await push_once(link, installed, payload, deadline=Deadline.after(LIMIT_S))
    assert pushed.sent_bytes - (10 - tenth) * 300_000 in range(1000)
    assert await arrived(link, installed, payload)


async def test_a_model_outlives_another_install_and_goes_when_there_is_no_room(
    link: Pmd3Link, installed: str, tmp_path: Path
) -> None:
    old, new = model(2), model(3)
    for payload in (old, new):
        assert await push_once(link, installed, payload, deadline=Deadline.after(LIMIT_S))
    again = make_ipa(tmp_path / "again.ipa", installed)
    await link.install(again, installed, deadline=Deadline.after(LIMIT_S))
    assert not await push_once(link, installed, old, deadline=Deadline.after(LIMIT_S))
    deadline = Deadline.after(LIMIT_S)
    gone = await prune_models(link, installed, [new.digest], 400_000, deadline=deadline)
    assert old.digest in gone
    assert new.digest not in gone
    assert not await push_once(link, installed, new, deadline=Deadline.after(LIMIT_S))
    assert await push_once(link, installed, old, deadline=Deadline.after(LIMIT_S))
