"""The one place where the library's exceptions become `DeviceError`.

pymobiledevice3 raises its own tree, but also raw `OSError`, asyncio's errors, `AssertionError` (a
launch without a pid), `QueueShutDown` (a lost phone, outside its tree), and whatever a malformed
reply trips over. All of them end here, with layer, phase and remedy.
"""

from __future__ import annotations

import asyncio
import plistlib
import struct
from dataclasses import dataclass
from typing import Final
from xml.parsers.expat import ExpatError

from bytestruct import BinaryDataError
from pymobiledevice3 import exceptions as pmd
from pymobiledevice3.dtx import DTXNsError, DTXProtocolError, QueueShutDown

from orchestrator.device.keeper.lines import printable
from orchestrator.domain.errors import DeviceError, is_disk_error
from orchestrator.domain.outcome import Cause

MAX_FACTS_CHARS: Final = 400


@dataclass(frozen=True, slots=True)
class _Rule:
    """What one family of exceptions means."""

    kinds: tuple[type[Exception], ...]
    cause: Cause
    remedy: str
    layer: str | None = None  # None: the layer of the call
    facts: str | None = None  # None: what the exception says


_UNPLUGGED: Final = "Check the cable and the hub, and that the phone is on"
_UNLOCK: Final = "Unlock the phone; fleet phones run best without a passcode"
_PAIR: Final = "Connect the phone by cable, unlock it and tap Trust, then pair again"

# The first rule that fits wins: subclasses stand before their bases.
_RULES: Final = (
    _Rule(
        (pmd.ConnectionFailedToUsbmuxdError,),
        Cause.NOT_READY,
        "Start usbmuxd, or correct the source's address in fleet.yaml",
        layer="usbmux",
        facts="no usbmuxd answers at the source's address",
    ),
    _Rule(
        (pmd.DeviceNotFoundError, pmd.NoDeviceConnectedError, pmd.BadDevError),
        Cause.DEVICE_LOST,
        _UNPLUGGED,
        layer="usbmux",
        facts="the phone is not attached",
    ),
    _Rule(
        (pmd.ConnectionFailedError,),
        Cause.DEVICE_LOST,
        "The phone may be restarting; wait, then try again",
        layer="usbmux",
        facts="the phone refused the connection to the service's port",
    ),
    _Rule((pmd.MuxException,), Cause.DEVICE_LOST, "Restart usbmuxd", layer="usbmux"),
    _Rule(
        (pmd.PairingDialogResponsePendingError,),
        Cause.NOT_READY,
        "Unlock the phone and tap Trust",
        layer="lockdown",
        facts="the phone waits for an answer to its Trust dialog",
    ),
    _Rule(
        (pmd.UserDeniedPairingError,),
        Cause.NOT_READY,
        _PAIR,
        layer="lockdown",
        facts="somebody tapped Don't Trust on the phone",
    ),
    _Rule(
        (pmd.PasswordRequiredError, pmd.PasscodeRequiredError),
        Cause.DEVICE_LOCKED,
        _UNLOCK,
        layer="lockdown",
        facts="the phone is locked",
    ),
    _Rule(
        (
            pmd.NotPairedError,
            pmd.InvalidHostIDError,
            pmd.FatalPairingError,
            pmd.NotTrustedError,
            pmd.PairingError,
        ),
        Cause.NOT_READY,
        _PAIR,
        layer="lockdown",
        facts="the phone does not accept this computer's pairing",
    ),
    _Rule(
        (pmd.DeveloperModeIsNotEnabledError,),
        Cause.NOT_READY,
        "Turn it on in Settings > Privacy & Security > Developer Mode; the phone restarts",
        facts="Developer Mode is off",
    ),
    _Rule(
        (pmd.NotMountedError, pmd.InvalidServiceError, pmd.UserspaceTunnelUnavailableError),
        Cause.NOT_READY,
        "Mount the developer disk image (once per boot); iOS 17.4 or later is needed, or a tunneld",
        facts="the phone does not offer the developer service",
    ),
    _Rule(
        (pmd.TSSError,),
        Cause.NOT_READY,
        "Let this host reach gs.apple.com; Apple may also refuse an image that is too old",
        layer="host",
        facts="Apple's signing server did not sign the developer disk image for this phone",
    ),
    _Rule(
        (pmd.NoSuchBuildIdentityError, pmd.DeveloperDiskImageNotFoundError),
        Cause.NOT_READY,
        "Update pymobiledevice3, or open the newest Xcode once with the phone attached",
        layer="host",
        facts="no developer disk image on this host knows this phone or its iOS",
    ),
    _Rule(
        (pmd.RSDRequiredError,),
        Cause.NOT_READY,
        "Open Xcode once with the phone attached: it mounts the image",
        facts="this iOS takes its developer disk image through a tunnel alone",
    ),
    _Rule((pmd.StartServiceError,), Cause.NOT_READY, "Restart the phone", layer="lockdown"),
    _Rule((pmd.LockdownError,), Cause.NOT_READY, "Restart the phone", layer="lockdown"),
    _Rule(
        (pmd.AppNotInstalledError,),
        Cause.INSTALL_FAILED,
        "Install the app first",
        facts="the app is not installed",
    ),
    _Rule((pmd.AppInstallError,), Cause.INSTALL_FAILED, "See the device's code", layer="install"),
    _Rule((pmd.AfcFileNotFoundError,), Cause.NOT_READY, "", layer="afc"),
    _Rule((pmd.AfcException,), Cause.NOT_READY, "Check the phone's free space", layer="afc"),
    _Rule(
        (pmd.TunneldConnectionError,),
        Cause.NOT_READY,
        "Start it with `sudo pymobiledevice3 remote tunneld`, or leave the address out",
        layer="tunnel",
        facts="no tunneld answers at the address given",
    ),
    _Rule(
        (pmd.RemoteXPCHandshakeTimeoutError,),
        Cause.NOT_READY,
        "Restart the phone",
        layer="tunnel",
        facts="the phone's developer service did not answer the handshake",
    ),
    _Rule(
        (pmd.ConnectionTerminatedError, pmd.ChannelClosedError, QueueShutDown),
        Cause.DEVICE_LOST,
        _UNPLUGGED,
        facts="the phone closed the connection",
    ),
    _Rule((pmd.CoreDeviceError,), Cause.NOT_READY, "Unlock the phone, then try again"),
    _Rule(
        (AssertionError,),
        Cause.NOT_READY,
        "Launch the app by hand once and look at what the phone says",
        facts="the phone started no process",
    ),
    _Rule(
        (pmd.ProtocolError, DTXProtocolError, pmd.MessageNotSupportedError, pmd.MuxVersionError),
        Cause.DEVICE_LOST,
        "Reconnect the phone; if it comes again, its iOS may be newer than this tool",
        facts="the phone's answer does not fit the protocol",
    ),
    _Rule((pmd.PyMobileDevice3Exception,), Cause.NOT_READY, "Restart the phone"),
    _Rule(
        (ConnectionRefusedError,),
        Cause.DEVICE_LOST,
        _UNPLUGGED,
        facts="nothing listens there any more",
    ),
    _Rule(
        (ConnectionError, asyncio.IncompleteReadError, EOFError),
        Cause.DEVICE_LOST,
        _UNPLUGGED,
        facts="the connection broke",
    ),
    _Rule(
        (asyncio.TimeoutError,),
        Cause.DEVICE_LOST,
        _UNPLUGGED,
        facts="the library gave up waiting for the phone",
    ),
    _Rule((OSError,), Cause.DEVICE_LOST, _UNPLUGGED),
)

# What parsing a malformed reply can raise; the phone is hostile, so any of them may come.
_MALFORMED: Final = (
    BinaryDataError,
    ExpatError,
    plistlib.InvalidFileException,
    struct.error,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    RuntimeError,
    OverflowError,
    MemoryError,
)


def device_error(error: Exception, alias: str, layer: str, phase: str) -> DeviceError:
    """Return what an exception means for a phone."""
    if isinstance(error, DTXNsError):
        return _refusal(error, alias, layer, phase)
    if is_disk_error(error):
        facts = f"this computer cannot write: {error}"
        return DeviceError(
            alias, "host", phase, facts, cause=Cause.NOT_READY, remedy="Make room on its disk"
        )
    for rule in _RULES:
        if isinstance(error, rule.kinds):
            facts = rule.facts or _facts(error)
            where = rule.layer or layer
            return DeviceError(alias, where, phase, facts, cause=rule.cause, remedy=rule.remedy)
    if isinstance(error, _MALFORMED):
        facts = f"the phone's answer cannot be read ({_facts(error)})"
        return DeviceError(alias, layer, phase, facts, remedy="Reconnect the phone")
    return DeviceError(alias, layer, phase, _facts(error))


def _facts(error: Exception) -> str:
    # Only the first line: further ones ask the reader to report to the library's authors.
    first = next(iter(str(error).strip().splitlines()), "")
    text = printable(first)[:MAX_FACTS_CHARS]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _refusal(error: DTXNsError, alias: str, layer: str, phase: str) -> DeviceError:
    """Return the error for an NSError, which the phone sends when it refuses a launch."""
    text = printable(" ".join(str(error).split()))[:MAX_FACTS_CHARS]
    # FBSOpenApplicationErrorDomain states the reason `Locked`; CoreDevice says it in words.
    if "Locked" in text or "unlocked" in text:
        return DeviceError(alias, layer, phase, text, cause=Cause.DEVICE_LOCKED, remedy=_UNLOCK)
    return DeviceError(alias, layer, phase, text, cause=Cause.NOT_READY, remedy="See the reason")
