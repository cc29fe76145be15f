"""The faults that the chaos runs inject, with their settings and how long they last."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final


@dataclass(frozen=True)
class Injection:
    """A fault with its settings, and how long it lasts."""

    name: str
    kind: str
    settings: dict[str, Any] = field(default_factory=dict, hash=False)
    for_s: float | None = None  # None: to the end of the run


_AFC: Final = {"service": "com.apple.afc"}
_INSTALLER: Final = {"service": "com.apple.mobile.installation_proxy"}
_REPORTS: Final = {"service": "com.apple.crashreportcopymobile"}

UNPLUG: Final = Injection("cable out for 3 s", "unplug", for_s=3.0)
USBMUX_RESTART: Final = Injection("usbmuxd restarts, 2 s", "usbmux_restart", for_s=2.0)
USBMUX_HANG: Final = Injection("usbmuxd hangs, 3 s", "usbmux_hang", for_s=3.0)
TUNNEL: Final = Injection("tunnel moves", "tunnel_moved")
HUB: Final = Injection("hub lost for 3 s", "hub_loss", {"ports": 2}, for_s=3.0)
SHORT: Final = (UNPLUG, USBMUX_RESTART, USBMUX_HANG, TUNNEL)
FARM_WIDE: Final = (USBMUX_RESTART, USBMUX_HANG, HUB)

CLOCK: Final = Injection("clock one hour ahead", "clock_skew", {"seconds": 3600})
WIFI: Final = Injection("listed over Wi-Fi too", "wifi_duplicate")
LOW_POWER: Final = Injection("Low Power Mode", "low_power")
BATTERY: Final = Injection("battery drains", "battery_drain", {"percent_per_min": 1.0})
HARMLESS: Final = (CLOCK, WIFI, LOW_POWER, BATTERY)

UNPLUGGED: Final = Injection("cable out for good", "unplug")
REBOOT: Final = Injection("reboot", "reboot")
NO_PAIRING: Final = Injection("pairing lost", "pairing_lost")
DEVELOPER_OFF: Final = Injection("Developer Mode off", "developer_mode_off")
NO_IMAGE: Final = Injection("developer image unmounted", "ddi_unmounted")
INSTALL_REFUSED: Final = Injection("install refused", "install_error", {"reason": "signature"})
DISK_FULL: Final = Injection("disk full", "disk_full")
LOCK: Final = Injection("locked for 3 s", "lock", for_s=3.0)

APP_PORT: Final = Injection("app's port refuses, 3 s", "telemetry_refused", for_s=3.0)
IMPOSTOR: Final = Injection("noise on the app's port, 3 s", "hostile_app", {"sends": "noise"}, 3.0)
NAME: Final = Injection("hostile name", "hostile_name", {"name": "../../\x1b[2J\n::error::"})
LIES: Final = Injection(
    "hostile report names",
    "hostile_files",
    {"names": ["../../../../escaped.ips", "..\\escaped.ips", "\x1b[2J.ips"]},
)

SLAM_INSTALLER: Final = Injection("installer slams", "slam", {**_INSTALLER, "at_byte": 4})
JUNK_INSTALLER: Final = Injection("installer sends junk", "junk", dict(_INSTALLER))
OVERSIZED_INSTALLER: Final = Injection("installer oversized", "oversized", dict(_INSTALLER))
SLOW_AFC: Final = Injection("AFC slow, 500 kB/s", "slow", {**_AFC, "bytes_per_s": 500_000.0})
IDLE_AFC: Final = Injection("AFC drops when idle, 10 s", "idle_drop", {**_AFC, "idle_s": 10.0})
MUTE_REPORTS: Final = Injection("crash reports mute, 5 s", "mute", dict(_REPORTS), 5.0)
SLAM_REPORTS: Final = Injection("crash reports slam", "slam", {**_REPORTS, "at_byte": 40})
JUNK_REPORTS: Final = Injection("crash reports send junk", "junk", dict(_REPORTS))
OVERSIZED_REPORTS: Final = Injection("crash reports oversized", "oversized", dict(_REPORTS))
STALL_REPORTS: Final = Injection(
    "crash reports stall, 5 s", "stall", {**_REPORTS, "at_byte": 40}, 5.0
)
