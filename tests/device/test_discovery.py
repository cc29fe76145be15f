from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio
import pytest

from orchestrator.device.discovery import (
    Attachment,
    Expected,
    Identity,
    UsbmuxSource,
    discover,
    merged,
    normal_udid,
)
from orchestrator.domain.deadline import Deadline
from orchestrator.domain.errors import DeadlineExceededError, DeviceError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

USB, FARM = UsbmuxSource("usb"), UsbmuxSource("farm", "127.0.0.1:27015")
A, B = "00008130-0000000000000A01", "00008130-0000000000000B02"


def identity(name: str = "iPhone") -> Identity:
    return Identity(name, "iPhone16,1", "18.6", "22G86", virtual=False)


@dataclass
class ScriptedBrowser:
    """Answers from a script; an exception in it is raised."""

    lists: dict[str, Sequence[Attachment] | DeviceError]
    answers: dict[str, Identity | DeviceError]
    before: Callable[[str], object] = field(default=lambda _udid: None)

    async def attachments(
        self, source: UsbmuxSource, *, deadline: Deadline
    ) -> Sequence[Attachment]:
        found = self.lists[source.name]
        if isinstance(found, DeviceError):
            raise found
        return found

    async def identity(self, attachment: Attachment, *, deadline: Deadline) -> Identity:
        gate = self.before(attachment.udid)
        if isinstance(gate, anyio.Event):
            await gate.wait()
        answer = self.answers[attachment.udid]
        if isinstance(answer, DeviceError):
            raise answer
        return answer


def at(udid: str, source: UsbmuxSource = USB, *, is_usb: bool = True) -> Attachment:
    return Attachment(udid, source, 1, is_usb)


async def test_phones_of_all_sources_come_in_order_of_udid() -> None:
    browser = ScriptedBrowser(
        {"usb": [at(B)], "farm": [at(A, FARM)]}, {A: identity("one"), B: identity("two")}
    )
    found = await discover([USB, FARM], browser, deadline=Deadline.after(5))
    assert [(one.udid, one.alias, one.source) for one in found.phones] == [
        (A, "one", "farm"),
        (B, "two", "usb"),
    ]


async def test_a_mute_phone_is_unreachable_and_does_not_hide_the_others() -> None:
    silence = DeadlineExceededError(A, "lockdown", "discover", 5.0)
    browser = ScriptedBrowser({"usb": [at(A), at(B)]}, {A: silence, B: identity()})
    found = await discover([USB], browser, deadline=Deadline.after(5))
    assert [one.udid for one in found.phones] == [B]
    assert [(one.udid, one.source) for one in found.unreachable] == [(A, "usb")]
    assert "no answer within 5 s" in found.unreachable[0].reason


async def test_phones_are_asked_at_the_same_time() -> None:
    asked: set[str] = set()
    both_asked = anyio.Event()

    def gate(udid: str) -> anyio.Event:
        asked.add(udid)
        if asked == {A, B}:
            both_asked.set()
        return both_asked

    browser = ScriptedBrowser(
        {"usb": [at(A), at(B)]}, {A: identity("one"), B: identity("two")}, before=gate
    )
    with anyio.fail_after(5):
        found = await discover([USB], browser, deadline=Deadline.after(5))
    assert len(found.phones) == 2


async def test_a_dead_source_is_reported_and_the_other_still_asked() -> None:
    dead = DeviceError("farm", "usbmux", "discover", "no usbmuxd answers")
    browser = ScriptedBrowser({"usb": [at(A)], "farm": dead}, {A: identity()})
    found = await discover([USB, FARM], browser, deadline=Deadline.after(5))
    assert len(found.phones) == 1
    assert [one.source for one in found.dead_sources] == ["farm"]


async def test_expected_phones_give_alias_and_tags_and_absent_ones_are_named() -> None:
    browser = ScriptedBrowser({"usb": [at(A)]}, {A: identity("iPhone")})
    expected = [
        Expected(A.replace("-", "").lower(), "bench-01", ("release",)),
        Expected(B, "bench-02"),
    ]
    found = await discover([USB], browser, deadline=Deadline.after(5), expected=expected)
    assert (found.phones[0].alias, found.phones[0].tags) == ("bench-01", ("release",))
    assert [one.alias for one in found.absent] == ["bench-02"]


async def test_a_mute_expected_phone_is_unreachable_not_absent() -> None:
    silence = DeadlineExceededError(A, "lockdown", "discover", 5.0)
    browser = ScriptedBrowser({"usb": [at(A)]}, {A: silence})
    found = await discover(
        [USB], browser, deadline=Deadline.after(5), expected=[Expected(A, "bench-01")]
    )
    assert found.absent == ()
    assert len(found.unreachable) == 1


def test_one_phone_over_cable_and_network_counts_once_by_cable() -> None:
    cable, network = at(A), at(A, is_usb=False)
    assert merged([network, cable]) == {A: cable}
    assert merged([cable, network]) == {A: cable}


def test_one_phone_on_two_sources_counts_once_on_the_first() -> None:
    assert merged([at(A, USB), at(A, FARM)]) == {A: at(A, USB)}


@pytest.mark.parametrize(
    ("given", "normal"),
    [
        ("000081300000000000000a01", A),
        ("00008130-0000000000000a01", A),
        ("a" * 40, "a" * 40),  # the form of old phones, lower case
    ],
)
def test_udids_are_compared_with_their_dash(given: str, normal: str) -> None:
    assert normal_udid(given) == normal
