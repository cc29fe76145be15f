"""A remembered digest holds exactly as long as the files do."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from orchestrator.mlpackage.digest_cache import known_digest, remember_digest, stamp_of
from tests.mlpackage.small import write_package

if TYPE_CHECKING:
    from pathlib import Path

WEIGHTS = "Data/com.apple.CoreML/weights/weight.bin"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    return write_package(tmp_path / "p.mlpackage")


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "digests.json"


def test_a_digest_is_remembered(package: Path, cache: Path) -> None:
    remember_digest(package, stamp_of(package), "ab" * 32, cache)
    assert known_digest(package, cache) == "ab" * 32


def test_a_change_of_equal_size_forgets_it(package: Path, cache: Path) -> None:
    remember_digest(package, stamp_of(package), "ab" * 32, cache)
    status = (package / WEIGHTS).stat()
    content = bytearray((package / WEIGHTS).read_bytes())
    content[-1] ^= 1
    (package / WEIGHTS).write_bytes(content)
    # Even with the old time of writing put back: the time of change cannot be.
    os.utime(package / WEIGHTS, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert known_digest(package, cache) is None


def test_a_new_file_forgets_it(package: Path, cache: Path) -> None:
    remember_digest(package, stamp_of(package), "ab" * 32, cache)
    (package / "new").write_bytes(b"")
    assert known_digest(package, cache) is None


def test_a_package_that_changed_while_it_was_hashed_is_not_remembered(
    package: Path, cache: Path
) -> None:
    stamp = stamp_of(package)
    (package / "new").write_bytes(b"")
    remember_digest(package, stamp, "ab" * 32, cache)
    assert known_digest(package, cache) is None


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b'{"x": 1}', b"[" * 100_000, b"\xff"])
def test_a_damaged_cache_is_an_empty_one(content: bytes, package: Path, cache: Path) -> None:
    cache.parent.mkdir()
    cache.write_bytes(content)
    assert known_digest(package, cache) is None
    remember_digest(package, stamp_of(package), "cd" * 32, cache)
    assert known_digest(package, cache) == "cd" * 32


def test_a_cache_that_cannot_be_written_is_no_error(package: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    remember_digest(package, stamp_of(package), "ab" * 32, tmp_path / "file" / "digests.json")


def test_the_oldest_of_200_is_dropped(tmp_path: Path, cache: Path) -> None:
    for ordinal in range(201):
        (tmp_path / str(ordinal)).mkdir()
        remember_digest(tmp_path / str(ordinal), stamp_of(tmp_path / str(ordinal)), "x", cache)
    assert known_digest(tmp_path / "0", cache) is None
    assert known_digest(tmp_path / "200", cache) == "x"
