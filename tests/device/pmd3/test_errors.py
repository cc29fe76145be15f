from __future__ import annotations

import asyncio
import struct

import anyio
import pytest
from pymobiledevice3 import exceptions as pmd
from pymobiledevice3.dtx import DTXNsError, NSError, QueueShutDown

from orchestrator.device.link import PortRefusedError
from orchestrator.device.pmd3.calls import translated
from orchestrator.device.pmd3.errors import MAX_FACTS_CHARS, device_error
from orchestrator.domain.deadline import Deadline
from orchestrator.domain.errors import DeadlineExceededError, DeviceError
from orchestrator.domain.outcome import Cause


def refusal(domain: str, code: int, reason: str) -> DTXNsError:
    return DTXNsError(NSError(code, domain, {"NSLocalizedDescription": reason}))


@pytest.mark.parametrize(
    ("error", "layer", "cause", "says"),
    [
        (pmd.ConnectionFailedToUsbmuxdError(), "usbmux", Cause.NOT_READY, "Start usbmuxd"),
        (pmd.DeviceNotFoundError("A"), "usbmux", Cause.DEVICE_LOST, "not attached"),
        (pmd.NoDeviceConnectedError(), "usbmux", Cause.DEVICE_LOST, "not attached"),
        (pmd.BadDevError("x"), "usbmux", Cause.DEVICE_LOST, "not attached"),
        (pmd.ConnectionFailedError("x"), "usbmux", Cause.DEVICE_LOST, "refused the connection"),
        (pmd.MuxException("usbmuxd closed the connection."), "usbmux", Cause.DEVICE_LOST, "closed"),
        (pmd.NotPairedError(), "lockdown", Cause.NOT_READY, "tap Trust"),
        (pmd.InvalidHostIDError(), "lockdown", Cause.NOT_READY, "tap Trust"),
        (pmd.FatalPairingError(), "lockdown", Cause.NOT_READY, "tap Trust"),
        (pmd.PairingDialogResponsePendingError(), "lockdown", Cause.NOT_READY, "Trust dialog"),
        (pmd.UserDeniedPairingError(), "lockdown", Cause.NOT_READY, "Don't Trust"),
        (pmd.PasswordRequiredError(), "lockdown", Cause.DEVICE_LOCKED, "Unlock"),
        (
            pmd.PasscodeRequiredError("", "A", "18.5"),
            "lockdown",
            Cause.DEVICE_LOCKED,
            "Unlock",
        ),
        (pmd.InvalidServiceError("", "A", "17.0"), "call", Cause.NOT_READY, "disk image"),
        (pmd.DeveloperModeIsNotEnabledError(), "call", Cause.NOT_READY, "Developer Mode is off"),
        (pmd.TSSError("x"), "host", Cause.NOT_READY, "signing server"),
        (pmd.NoSuchBuildIdentityError(), "host", Cause.NOT_READY, "knows this phone"),
        (pmd.RSDRequiredError("A", "27.0"), "call", Cause.NOT_READY, "through a tunnel alone"),
        (pmd.NotMountedError(), "call", Cause.NOT_READY, "disk image"),
        (pmd.AppInstallError("X: y"), "install", Cause.INSTALL_FAILED, "X: y"),
        (pmd.AppNotInstalledError(), "call", Cause.INSTALL_FAILED, "not installed"),
        (pmd.AfcException("no room", 14), "afc", Cause.NOT_READY, "no room"),
        (pmd.ConnectionTerminatedError(), "call", Cause.DEVICE_LOST, "closed the connection"),
        (QueueShutDown("Queue is shut down"), "call", Cause.DEVICE_LOST, "closed the connection"),
        (pmd.RemoteXPCHandshakeTimeoutError("x"), "tunnel", Cause.NOT_READY, "handshake"),
        (pmd.TunneldConnectionError(), "tunnel", Cause.NOT_READY, "tunneld"),
        (pmd.CoreDeviceError("locked out"), "call", Cause.NOT_READY, "locked out"),
        (AssertionError(), "call", Cause.NOT_READY, "started no process"),
        (ConnectionResetError(104, "reset"), "call", Cause.DEVICE_LOST, "connection broke"),
        (ConnectionRefusedError(111, "no"), "call", Cause.DEVICE_LOST, "nothing listens"),
        (asyncio.IncompleteReadError(b"", 4), "call", Cause.DEVICE_LOST, "connection broke"),
        (TimeoutError(), "call", Cause.DEVICE_LOST, "gave up waiting"),
        (OSError(28, "No space left"), "host", Cause.NOT_READY, "No space left"),
        (OSError(5, "I/O error"), "call", Cause.DEVICE_LOST, "I/O error"),
        (struct.error("unpack"), "call", Cause.DEVICE_LOST, "cannot be read"),
        (KeyError("Properties"), "call", Cause.DEVICE_LOST, "cannot be read"),
        (RecursionError("deep"), "call", Cause.DEVICE_LOST, "cannot be read"),
        (Exception("anything"), "call", Cause.DEVICE_LOST, "anything"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
def test_each_exception_gets_layer_cause_and_remedy(
    error: Exception, layer: str, cause: Cause, says: str
) -> None:
    got = device_error(error, "bench-01", "call", "launch")
    assert (got.alias, got.layer, got.phase, got.cause) == ("bench-01", layer, "launch", cause)
    assert says in str(got)


def test_a_refused_launch_says_what_the_phone_said() -> None:
    error = refusal("FBSOpenApplicationServiceErrorDomain", 4, "application not installed")
    got = device_error(error, "bench-01", "dvt", "launch")
    assert (got.layer, got.cause) == ("dvt", Cause.NOT_READY)
    assert "application not installed" in got.facts


@pytest.mark.parametrize("reason", ["Locked", "the device was not, or could not be, unlocked"])
def test_a_launch_on_a_locked_phone_is_the_phones_lock(reason: str) -> None:
    got = device_error(refusal("FBSOpenApplicationErrorDomain", 7, reason), "a", "dvt", "launch")
    assert got.cause is Cause.DEVICE_LOCKED


def test_nobody_is_asked_to_report_to_the_librarys_authors() -> None:
    for error in (pmd.ProtocolError("odd"), pmd.PyMobileDevice3Exception("odd")):
        assert "github.com" not in str(device_error(error, "a", "afc", "pull"))


def test_hostile_text_is_cut_and_cannot_steer_a_terminal() -> None:
    got = device_error(pmd.AppInstallError("\x1b[2J" + "x" * 10_000), "a", "install", "install")
    assert "\x1b" not in str(got)
    assert len(got.facts) < MAX_FACTS_CHARS + 100


async def test_the_original_exception_stays_attached() -> None:
    lost = pmd.ConnectionTerminatedError()
    with pytest.raises(DeviceError) as caught, translated("a", "afc", "pull", Deadline.after(5)):
        raise lost
    assert caught.value.__cause__ is lost


async def test_our_own_errors_pass_unchanged() -> None:
    refused = PortRefusedError("a", 28450)
    with (
        pytest.raises(PortRefusedError) as caught,
        translated("a", "app", "connect", Deadline.after(5)),
    ):
        raise refused
    assert caught.value is refused


async def test_a_mute_phone_costs_the_deadline_and_names_it() -> None:
    with (
        pytest.raises(
            DeadlineExceededError, match=r"a: pull failed in afc: no answer within 0\.01"
        ),
        translated("a", "afc", "pull", Deadline.after(0.01)),
    ):
        await anyio.sleep_forever()


async def test_a_passed_deadline_does_not_start_waiting() -> None:
    with pytest.raises(DeadlineExceededError), translated("a", "afc", "pull", Deadline.after(0)):
        await anyio.sleep_forever()


async def test_cancellation_from_outside_stays_cancellation() -> None:
    with anyio.CancelScope() as scope:
        with translated("a", "afc", "pull", Deadline.after(5)):
            scope.cancel()
            await anyio.sleep_forever()
    assert scope.cancelled_caught
