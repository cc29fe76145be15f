from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from orchestrator.virtual.kernel import InstalledApp, LaunchRefusedError
from orchestrator.virtual.kernel.environment import (
    SOCKET_PATH_LIMIT_BYTES,
    child_environment,
    port_of,
    socket_of,
)

if TYPE_CHECKING:
    from orchestrator.virtual.kernel import KernelFacts

APP = InstalledApp("com.example.a", "A", Path("/x/A"), Path("/x/box"), "1", "1")


def folder_for_socket_path_of(length: int) -> Path:
    return Path("/" + "d" * (length - len("//28450.sock")))


def test_a_socket_path_of_the_greatest_length_is_taken() -> None:
    folder = folder_for_socket_path_of(SOCKET_PATH_LIMIT_BYTES)
    assert len(str(socket_of(APP, folder, 28450))) == SOCKET_PATH_LIMIT_BYTES


def test_a_longer_socket_path_is_refused_with_its_length_and_a_remedy() -> None:
    folder = folder_for_socket_path_of(SOCKET_PATH_LIMIT_BYTES + 1)
    with pytest.raises(LaunchRefusedError, match=r"has \d+ bytes, a socket path holds .* shorter"):
        socket_of(APP, folder, 28450)


def test_the_length_of_a_socket_path_is_counted_in_bytes_not_characters() -> None:
    with pytest.raises(LaunchRefusedError):
        socket_of(APP, Path("/" + "ä" * 60), 28450)


@pytest.mark.parametrize("port", ["", "0", "65536", "-1", "28450 ", "²", "9" * 5000])
def test_a_port_that_is_none_is_refused(port: str) -> None:
    with pytest.raises(LaunchRefusedError, match="not a port"):
        port_of(APP, {"FLEET_PORT": port})


def test_the_port_is_28450_unless_the_launch_names_another() -> None:
    assert port_of(APP, {}) == 28450
    assert port_of(APP, {"FLEET_PORT": "65535"}) == 65535


def test_a_launch_cannot_change_what_the_phone_sets(facts: KernelFacts) -> None:
    given = {"FLEET_MEMORY_LIMIT_BYTES": "1", "HOME": "/root", "FLEET_TOKEN": "t"}
    environment = child_environment(facts, APP, Path("/s.sock"), given, {"PATH": "/bin", "A": "b"})
    assert environment["FLEET_MEMORY_LIMIT_BYTES"] == str(2867 * 1024**2)
    assert environment["FLEET_PHYSICAL_MEMORY_BYTES"] == "5917753344"
    assert environment["FLEET_PRODUCT_TYPE"] == "iPhone15,4"
    assert environment["HOME"] == "/x/box"
    assert environment["FLEET_TOKEN"] == "t"
    assert environment["PATH"] == "/bin"
    assert "A" not in environment, "the host's environment leaks into the phone"


def test_an_entitled_app_gets_the_greater_limit(facts: KernelFacts) -> None:
    environment = child_environment(replace(facts, entitled=True), APP, Path("/s"), {}, {})
    assert environment["FLEET_MEMORY_LIMIT_BYTES"] == str(4096 * 1024**2)
