"""A model is sent once: again only if something of it is missing on the phone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from orchestrator.device.pushing import (
    MARKER,
    Payload,
    PushDamagedError,
    package_payload,
    prunable,
    push_once,
)
from orchestrator.domain.deadline import Deadline
from orchestrator.domain.errors import DeviceError
from tests.device.scripted import ScriptedLink

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

FOLDER = "Documents/models/aa"
MODEL = Payload(FOLDER, "aa", {"model.json": b'{"kind":"witness"}'})


@pytest.fixture
async def link() -> AsyncIterator[ScriptedLink]:
    scripted = ScriptedLink()
    yield scripted
    await scripted.session.aclose()


async def push(link: ScriptedLink, payload: Payload = MODEL) -> bool:
    return bool(await push_once(link, "dev.app", payload, deadline=Deadline.after(1)))


async def test_a_model_is_pushed_with_its_marker_last(link: ScriptedLink) -> None:
    assert await push(link)
    assert list(link.files) == [f"{FOLDER}/model.json", f"{FOLDER}/{MARKER}"]


async def test_a_model_that_is_there_is_not_sent_again(link: ScriptedLink) -> None:
    await push(link)
    link.script.calls.clear()
    assert not await push(link)
    assert link.script.calls == ["tree"]


@pytest.mark.parametrize("lost", ["model.json", MARKER])
async def test_a_model_with_a_missing_file_is_sent_again(link: ScriptedLink, lost: str) -> None:
    await push(link)
    del link.files[f"{FOLDER}/{lost}"]
    assert await push(link)
    assert link.files[f"{FOLDER}/{lost}"]


async def test_a_cut_file_is_sent_again_although_the_marker_is_there(link: ScriptedLink) -> None:
    await push(link)
    link.files[f"{FOLDER}/model.json"] = b"{"
    assert await push(link)
    assert link.files[f"{FOLDER}/model.json"] == MODEL.files["model.json"]


async def test_a_push_that_was_cut_leaves_no_marker(link: ScriptedLink) -> None:
    link.script.failures["push"] = DeviceError("bench-01", "afc", "push", "cable lost")
    with pytest.raises(DeviceError, match="cable lost"):
        await push(link)
    link.script.failures.clear()
    assert await push(link)


async def test_a_file_that_was_continued_wrong_is_sent_again_whole(link: ScriptedLink) -> None:
    link.files[f"{FOLDER}/model.json"] = b"{'k"  # three bytes, one of them not ours
    pushed = await push_once(link, "dev.app", MODEL, deadline=Deadline.after(1))
    assert pushed.resumed == ("model.json",)
    assert link.files[f"{FOLDER}/model.json"] == MODEL.files["model.json"]


async def test_a_phone_that_keeps_other_bytes_than_it_was_sent_is_told_of(
    link: ScriptedLink, monkeypatch: pytest.MonkeyPatch
) -> None:
    link.files[f"{FOLDER}/model.json"] = b"{"

    async def wrong(*_: object, **__: object) -> str:
        return "00"

    monkeypatch.setattr(link, "digest", wrong)
    with pytest.raises(PushDamagedError, match=r"model\.json.*another cable"):
        await push(link)
    assert f"{FOLDER}/{MARKER}" not in link.files


def test_the_oldest_models_go_until_the_rest_fits() -> None:
    held = [(3.0, "new", 40), (1.0, "old", 30), (2.0, "wanted", 50)]
    assert prunable(held, ["wanted"], 200) == []
    assert prunable(held, ["wanted"], 95) == ["old"]
    assert prunable(held, ["wanted"], 10) == ["old", "new"]


async def test_a_package_keeps_its_folders_below_the_digest(
    link: ScriptedLink, tmp_path: Path
) -> None:
    package = tmp_path / "decode.mlpackage"
    (package / "Data").mkdir(parents=True)
    (package / "Manifest.json").write_text("{}")
    (package / "Data" / "weight.bin").write_bytes(b"\0" * 64)
    payload = await package_payload(package, "bb")
    assert await push(link, payload)
    assert f"{payload.folder}/decode.mlpackage/Data/weight.bin" in link.files
    assert not await push(link, payload)


async def test_a_package_with_a_cut_inner_file_is_sent_again(
    link: ScriptedLink, tmp_path: Path
) -> None:
    package = tmp_path / "decode.mlpackage"
    (package / "Data").mkdir(parents=True)
    (package / "Data" / "weight.bin").write_bytes(b"\0" * 64)
    payload = await package_payload(package, "bb")
    await push(link, payload)
    link.files[f"{payload.folder}/decode.mlpackage/Data/weight.bin"] = b"\0" * 63
    assert await push(link, payload)


async def test_a_push_tells_how_far_it_is(link: ScriptedLink, tmp_path: Path) -> None:
    package = tmp_path / "m.mlpackage"
    package.mkdir()
    for name, size in (("a.bin", 300), ("b.bin", 100)):
        (package / name).write_bytes(b"x" * size)
    payload = await package_payload(package, "bb")
    told: list[float] = []
    await push_once(link, "dev.app", payload, deadline=Deadline.after(1), on_percent=told.append)
    assert told == [75.0, 100.0]
