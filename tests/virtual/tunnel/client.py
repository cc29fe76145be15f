"""Drives a phone through pymobiledevice3's own tunnel; run as a process of its own.

The library allows one such tunnel per process, and it must not share the farm's event loop.
Prints one line of JSON.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import sys
from pathlib import Path

from pymobiledevice3.remote.userspace_tunnel import UserspaceRsdTunnel
from pymobiledevice3.services.afc import AfcService
from pymobiledevice3.services.dvt.instruments.dvt_provider import DvtProvider
from pymobiledevice3.services.dvt.instruments.process_control import ProcessControl
from pymobiledevice3.services.dvt.instruments.sysmontap import Sysmontap
from pymobiledevice3.services.installation_proxy import InstallationProxyService

LIMIT_S = 50
LARGE = bytes(range(251)) * 12_000  # 3 MB


async def drive(udid: str, bundle_id: str, package: str) -> dict[str, object]:
    async with UserspaceRsdTunnel(serial=udid) as remote:
        async with InstallationProxyService(remote) as proxy:
            await proxy.install_from_local(Path(package))
        async with AfcService(remote) as afc:
            await afc.set_file_contents("/large.bin", LARGE)
            returned = await afc.get_file_contents("/large.bin")
        async with DvtProvider(remote) as dvt, ProcessControl(dvt) as control:
            pid = await control.launch(bundle_id)
            output = await anext(aiter(control))
            async with await Sysmontap.create(dvt, 50) as tap:
                rows = await anext(aiter(tap.iter_processes()))
            await control.kill(pid)
        return {
            "udid": remote.udid,
            "large_intact": hashlib.sha256(returned).digest() == hashlib.sha256(LARGE).digest(),
            "output": output.message,
            "sampled": pid in [row["pid"] for row in rows],
        }


if __name__ == "__main__":
    result = asyncio.run(asyncio.wait_for(drive(*sys.argv[1:]), LIMIT_S))
    print(json.dumps(result))
