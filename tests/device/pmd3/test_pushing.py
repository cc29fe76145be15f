"""A package reaches a virtual phone once, through the real client."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.device.pushing import MARKER, package_payload, push_once
from orchestrator.domain.deadline import Deadline

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.device.pmd3.link import Pmd3Link

LIMIT_S = 20.0


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
        sent.append(await push_once(link, installed, payload, deadline=deadline))
    await link.remove(installed, weight_file, deadline=Deadline.after(LIMIT_S))
    sent.append(await push_once(link, installed, payload, deadline=Deadline.after(LIMIT_S)))
    assert sent == [True, False, True]
    there = await link.list(installed, payload.folder, deadline=Deadline.after(LIMIT_S))
    assert {file.path.rpartition("/")[2] for file in there} == {MARKER, "decode.mlpackage"}
