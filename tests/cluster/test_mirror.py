"""The mirror follows what grows, goes on after a break, and fetches again what differs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from orchestrator.cluster.mirror import DamagedMirrorError, Mirror, joined_manifest
from orchestrator.cluster.run_files import listing, read_chunk
from orchestrator.domain.errors import RunDirectoryError
from orchestrator.runlog.manifest import differing_files, write_manifest

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.cluster.documents import FileState

STREAM = "devices/a-1/attempts/1/launches/1/stream.ndjson"


class CutError(Exception):
    """The network went."""


@dataclass
class Disk:
    """A host's run directory, read as an agent reads it."""

    root: Path
    cut_after: int | None = None  # reads until the network goes
    reads: list[tuple[str, int]] = field(default_factory=list)

    async def listing(self) -> list[FileState]:
        return listing(self.root)

    async def read(self, name: str, offset: int) -> bytes:
        if self.cut_after is not None and len(self.reads) >= self.cut_after:
            raise CutError
        self.reads.append((name, offset))
        return read_chunk(self.root, name, offset)

    def write(self, name: str, content: bytes) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def host(tmp_path: Path) -> Disk:
    disk = Disk(tmp_path / "host")
    disk.write("run.json", b"{}")
    disk.write("events.ndjson", b"one\n")
    disk.write(STREAM, b"record 1\n")
    return disk


@pytest.fixture
def mirror(tmp_path: Path) -> Mirror:
    return Mirror(tmp_path / "joined", "mini-1")


async def all_of(mirror: Mirror, host: Disk) -> None:
    await mirror.follow(host)
    await mirror.complete(host)


async def test_only_what_grew_is_fetched(host: Disk, mirror: Mirror) -> None:
    await mirror.follow(host)
    host.reads.clear()
    host.write(STREAM, b"record 1\nrecord 2\n")
    await mirror.follow(host)
    assert host.reads == [(STREAM, len(b"record 1\n"))]
    assert (mirror.root / STREAM).read_bytes() == b"record 1\nrecord 2\n"
    assert (mirror.root / "hosts/mini-1/events.ndjson").read_bytes() == b"one\n"


async def test_a_run_is_whole_and_sealed_at_its_end(host: Disk, mirror: Mirror) -> None:
    await mirror.follow(host)
    host.write(STREAM, b"record 1\nrecord 2\n")
    host.write("devices/a-1/telemetry.ndjson", b"merged\n")
    write_manifest(host.root)
    await mirror.complete(host)
    assert (mirror.root / "devices/a-1/telemetry.ndjson").read_bytes() == b"merged\n"
    write_manifest(mirror.root, joined_manifest(mirror.root, ["mini-1"]))
    assert differing_files(mirror.root) == []


async def test_a_mirror_goes_on_after_a_cut_at_any_read(host: Disk, tmp_path: Path) -> None:
    write_manifest(host.root)
    for cut_after in range(4):  # it takes four reads
        mirror = Mirror(tmp_path / f"cut-{cut_after}", "mini-1")
        host.reads.clear()
        host.cut_after = cut_after
        with pytest.raises(CutError):
            await all_of(mirror, host)
        host.cut_after = None
        await all_of(mirror, host)
        assert (mirror.root / STREAM).read_bytes() == b"record 1\n"
        write_manifest(mirror.root, joined_manifest(mirror.root, ["mini-1"]))
        assert differing_files(mirror.root) == []


async def test_what_differs_here_is_fetched_again(host: Disk, mirror: Mirror) -> None:
    await mirror.follow(host)
    write_manifest(host.root)
    (mirror.root / STREAM).write_bytes(b"damaged!\n")
    await mirror.complete(host)
    assert (mirror.root / STREAM).read_bytes() == b"record 1\n"


async def test_what_arrives_damaged_again_and_again_is_an_error(
    host: Disk, mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_manifest(host.root)
    answers = iter(range(100))

    async def noise(name: str, offset: int) -> bytes:
        if name == STREAM:
            return b"" if offset else b"noise %d" % next(answers)
        return read_chunk(host.root, name, offset)

    monkeypatch.setattr(host, "read", noise)
    with pytest.raises(DamagedMirrorError, match=r"mini-1: .*stream\.ndjson arrived damaged"):
        await mirror.complete(host)


async def test_an_edited_record_at_the_host_stays_a_difference(host: Disk, mirror: Mirror) -> None:
    write_manifest(host.root)
    host.write(STREAM, b"RECORD 1\n")  # behind the back of the manifest
    await mirror.complete(host)
    write_manifest(mirror.root, joined_manifest(mirror.root, ["mini-1"]))
    assert differing_files(mirror.root) == [STREAM]


async def test_a_file_that_the_manifest_does_not_know_stays_one(host: Disk, mirror: Mirror) -> None:
    write_manifest(host.root)
    host.write("devices/a-1/smuggled.json", b"{}")
    await mirror.complete(host)
    assert (mirror.root / "devices/a-1/smuggled.json").exists()
    write_manifest(mirror.root, joined_manifest(mirror.root, ["mini-1"]))
    assert differing_files(mirror.root) == ["devices/a-1/smuggled.json"]


async def test_a_host_cannot_write_outside_the_run(host: Disk, mirror: Mirror) -> None:
    (host.root / "MANIFEST.sha256").write_text(f"{'0' * 64}  devices/../../../escaped\n")
    with pytest.raises(RunDirectoryError):
        await mirror.complete(host)


@pytest.mark.parametrize("name", [".journal.ndjson.part", "half.json"])
async def test_what_lay_there_for_a_moment_is_not_kept(
    name: str, host: Disk, mirror: Mirror
) -> None:
    passing = host.root / "devices/a-1/attempts/1/launches/1" / name
    passing.write_bytes(b"half a transfer")
    await mirror.follow(host)
    passing.unlink()
    write_manifest(host.root)
    await mirror.complete(host)
    write_manifest(mirror.root, joined_manifest(mirror.root, ["mini-1"]))
    assert differing_files(mirror.root) == []


async def test_what_another_host_brought_is_left_alone(
    host: Disk, mirror: Mirror, tmp_path: Path
) -> None:
    other = Disk(tmp_path / "other")
    other.write("devices/b-2/device.json", b"{}")
    other.write("run.json", b"{}")
    for disk, name in ((host, "mini-1"), (other, "mini-2")):
        write_manifest(disk.root)
        await Mirror(mirror.root, name).complete(disk)
    write_manifest(mirror.root, joined_manifest(mirror.root, ["mini-1", "mini-2"]))
    assert differing_files(mirror.root) == []
    assert (mirror.root / STREAM).exists()
    assert (mirror.root / "devices/b-2/device.json").exists()
