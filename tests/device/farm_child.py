"""A farm in a process of its own that takes orders: `python -m tests.device.farm_child FOLDER N`.

It prints its description, then does one order per line of stdin and answers `done`; it ends with
its stdin. Orders: `unplug UDID`, `plug_in UDID`, `mute UDID SERVICE`, `unmute UDID SERVICE`,
`cut UDID BYTES` (unplug when so many more are written), `set UDID NAME JSON` (of the settings).
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.virtual.farm import Farm, ServeOptions, running_farm
from orchestrator.virtual.faults.vocabulary import fault_of
from orchestrator.virtual.identity import default_phones

if TYPE_CHECKING:
    from orchestrator.virtual.phone import VirtualPhone


async def main(folder: Path, count: int) -> None:
    options = ServeOptions(phones=default_phones(count), folder=folder)
    async with running_farm(options) as farm:
        _say(farm.describe().as_json())
        while line := await asyncio.to_thread(sys.stdin.readline):
            await _obey(farm, line.split())
            _say("done")


async def _obey(farm: Farm, words: list[str]) -> None:
    order, udid, *rest = words
    phone: VirtualPhone = next(one for one in farm.phones if one.udid == udid)
    match order, rest:
        case "unplug", []:
            await farm.unplug(phone)
        case "plug_in", []:
            await farm.plug_in(phone)
        case "reboot", []:
            await farm.reboot(phone)
        case "cut", [count]:
            await farm.faults.begin(udid, fault_of("unplug_at_write", {"at_byte": count}))
        case "mute", [service]:
            phone.settings.muted.add(service)
        case "unmute", [service]:
            phone.settings.muted.discard(service)
        case "set", [name, value]:
            setattr(phone.settings, name, json.loads(value))
        case _:
            raise ValueError(f"unknown order {words}")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
