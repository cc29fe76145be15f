"""CoreDeviceProxy with the stack of the real client at the other end."""

from __future__ import annotations

import asyncio
import json
import struct
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from pymobiledevice3.exceptions import ConnectionTerminatedError

from orchestrator.virtual.phone import COREDEVICE_PROXY
from tests.virtual.apps import BUNDLE_ID, pack
from tests.virtual.child import REPOSITORY, child_farm, client_environment

if TYPE_CHECKING:
    from pathlib import Path

    from pymobiledevice3.lockdown import UsbmuxLockdownClient


def test_apps_files_launch_and_samples_go_through_the_tunnel(tmp_path: Path) -> None:
    source = "import time\nprint('hello', flush=True)\ntime.sleep(60)\n"
    with child_farm("--models", "iPhone 16") as (_, farm):
        udid = farm["phones"][0]["udid"]
        package = str(pack(tmp_path / "soak.ipa", source))
        ended = subprocess.run(
            [sys.executable, "-m", "tests.virtual.tunnel.client", udid, BUNDLE_ID, package],
            cwd=REPOSITORY,
            env=client_environment(farm),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout) == {
        "udid": udid,
        "large_intact": True,
        "output": "hello\n",
        "sampled": True,
    }


async def test_the_handshake_agrees_on_addresses_and_mtu(lockdown: UsbmuxLockdownClient) -> None:
    answer = await shake_hands(lockdown, b'{"type": "clientHandshakeRequest", "mtu": 64000}')
    assert answer["clientParameters"] == {
        "mtu": 16_000,
        "address": "fd7a:1::2",
        "netmask": "ffff:ffff:ffff:ffff::",
    }
    assert answer["serverAddress"] == "fd7a:1::1"


@pytest.mark.parametrize("request_body", [b"nonsense", b"[]", b'{"mtu": "wide"}', b'{"mtu": null}'])
async def test_a_handshake_that_makes_no_sense_ends_the_connection(
    lockdown: UsbmuxLockdownClient, request_body: bytes
) -> None:
    with pytest.raises(ConnectionTerminatedError):
        await shake_hands(lockdown, request_body)


async def shake_hands(lockdown: UsbmuxLockdownClient, body: bytes) -> dict[str, object]:
    service = await lockdown.start_lockdown_service(COREDEVICE_PROXY)
    try:
        async with asyncio.timeout(5):
            await service.sendall(b"CDTunnel" + struct.pack(">H", len(body)) + body)
            head = await service.recvall(10)
            (length,) = struct.unpack(">H", head[8:])
            answer: dict[str, object] = json.loads(await service.recvall(length))
    finally:
        await service.close()
    return answer
