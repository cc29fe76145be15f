from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from orchestrator.device.keeper.place import (
    KeeperHeldError,
    KeeperPlace,
    KeeperRecord,
    PlaceError,
    claim,
    is_held,
    living,
    place_of,
    read_record,
    write_record,
)

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def place(tmp_path: Path) -> KeeperPlace:
    return place_of(tmp_path / "keepers", "00008130-A01", "default")


def record(pid: int = 7) -> KeeperRecord:
    return KeeperRecord(pid, "k.sock", "00008130-A01", "bench-01", "default", "dev.app", 8)


def test_a_phone_has_one_place_and_two_farms_with_one_udid_have_two(tmp_path: Path) -> None:
    assert place_of(tmp_path, "A", "default") == place_of(tmp_path, "A", "default")
    assert place_of(tmp_path, "A", "127.0.0.1:1") != place_of(tmp_path, "A", "127.0.0.1:2")


def test_a_claimed_place_is_private_and_held_until_let_go(place: KeeperPlace) -> None:
    assert not is_held(place)
    lock = claim(place)
    assert place.folder.stat().st_mode & 0o077 == 0
    assert is_held(place)
    os.close(lock)
    assert not is_held(place)


def test_a_second_keeper_is_told_who_has_the_phone(place: KeeperPlace) -> None:
    lock = claim(place)
    write_record(place, record(4711))
    with pytest.raises(KeeperHeldError, match="4711"):
        claim(place)
    os.close(lock)


def test_what_a_killed_keeper_left_is_cleared(place: KeeperPlace) -> None:
    os.close(claim(place))
    place.socket.touch()
    write_record(place, record())
    lock = claim(place)
    assert not place.socket.exists()
    assert read_record(place) is None
    os.close(lock)


def test_only_living_keepers_are_found(tmp_path: Path) -> None:
    dead, alive = place_of(tmp_path, "dead", "default"), place_of(tmp_path, "alive", "default")
    os.close(claim(dead))
    write_record(dead, record(1))
    lock = claim(alive)
    write_record(alive, record(2))
    assert [one.pid for one in living(tmp_path)] == [2]
    os.close(lock)


def test_a_folder_that_others_can_enter_is_refused(tmp_path: Path) -> None:
    root = tmp_path / "open"
    root.mkdir(mode=0o755)
    root.chmod(0o755)
    with pytest.raises(PlaceError, match="not private"):
        claim(place_of(root, "A", "default"))


def test_a_link_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "target").mkdir(mode=0o700)
    (tmp_path / "keepers").symlink_to(tmp_path / "target")
    with pytest.raises(PlaceError, match="not a folder"):
        claim(place_of(tmp_path / "keepers", "A", "default"))


def test_a_path_too_long_for_a_socket_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PlaceError, match="longer than 103 bytes"):
        claim(place_of(tmp_path / ("x" * 90), "A", "default"))


def test_a_torn_record_reads_as_none(place: KeeperPlace) -> None:
    lock = claim(place)
    place.record.write_bytes(b'{"pid": 7, "soc')
    assert read_record(place) is None
    os.close(lock)
