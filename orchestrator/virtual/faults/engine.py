"""Runs faults: those of a script at their times, and those that come over the control socket."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec

from orchestrator.virtual.faults.base import Fault, FaultError, Stage
from orchestrator.virtual.faults.vocabulary import fault_of, kind_of, settings_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from orchestrator.virtual.events import Event
    from orchestrator.virtual.farm import Farm
    from orchestrator.virtual.faults.base import Undo
    from orchestrator.virtual.phone import VirtualPhone


Since: TypeAlias = Literal["ready", "launch"]


class ScriptedFault(msgspec.Struct, frozen=True):
    """One line of a script."""

    phones: str  # names or UDIDs with commas between, or `all`
    fault: Fault
    at_s: float
    for_s: float | None = None  # then it is undone; None: it lasts
    since: Since = "ready"  # or from the first launch of an app on the phone


def scripted(document: Mapping[str, Any]) -> ScriptedFault:
    """Return a line of a script from its document: phone, at_s, for_s, kind and settings.

    Raises:
        FaultError: If it makes no sense.
    """
    rest = dict(document)
    try:
        phones, kind = str(rest.pop("phone")), str(rest.pop("kind"))
        at_s, for_s = float(rest.pop("at_s")), rest.pop("for_s", None)
        settings = rest.pop("settings", None) or {}
        since = msgspec.convert(rest.pop("since", "ready"), type=Since)
    except (KeyError, TypeError, ValueError) as error:
        raise FaultError(f"a scripted fault needs phone, kind and at_s: {error!r}") from error
    fault = fault_of(kind, {**settings, **rest})
    return ScriptedFault(phones, fault, at_s, None if for_s is None else float(for_s), since)


@dataclass(eq=False, slots=True)
class Active:
    """A fault that lasts."""

    phone: VirtualPhone
    kind: str
    undo: Undo


class FaultEngine:
    """Begins and undoes faults. What is chance follows from the farm's seed alone."""

    def __init__(self, farm: Farm) -> None:
        self._farm = farm
        self._active: list[Active] = []
        self._tasks: set[asyncio.Task[Any] | asyncio.Future[Any]] = set()
        self._ordinals: dict[tuple[str, str], int] = {}

    def schedule(self, script: Iterable[ScriptedFault]) -> None:
        """Begin each fault of a script at its time.

        Raises:
            FaultError: If a phone is not there.
        """
        for entry in script:
            self.phones(entry.phones)
        for entry in script:
            # A farm-wide moment is one; launches are each phone's own.
            names = [entry.phones]
            if entry.since == "launch":
                names = [phone.udid for phone in self.phones(entry.phones)]
            for name in names:
                self.hold(asyncio.ensure_future(self._play(entry, name)))

    def hold(self, task: asyncio.Future[Any]) -> None:
        """Keep a task until it is done; `close` cancels it."""
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def phones(self, text: str) -> list[VirtualPhone]:
        """Return the phones that a text names: names or UDIDs with commas between, or `all`.

        Raises:
            FaultError: If one is not there.
        """
        if text == "all":
            return list(self._farm.phones)
        known = {key: each for each in self._farm.phones for key in (each.udid, each.identity.name)}
        names = [name.strip() for name in text.split(",")]
        missing = [name for name in names if name not in known]
        if missing:
            have = ", ".join(phone.identity.name for phone in self._farm.phones)
            raise FaultError(f"no virtual phone {missing[0]!r}; there are {have}")
        return [known[name] for name in names]

    async def begin(self, text: str, fault: Fault, for_s: float | None = None) -> None:
        """Begin a fault on phones, and undo it after a time if one is given.

        Raises:
            FaultError: If a phone is not there, or cannot have the fault.
        """
        for phone in self.phones(text):
            active = await self._begin_on(phone, fault)
            if active is not None and for_s is not None:
                self.hold(asyncio.ensure_future(self._mend_later(active, for_s)))

    async def mend(self, text: str, kind: str | None = None) -> int:
        """Undo the faults of phones, or those of one kind; return how many there were."""
        phones = self.phones(text)
        undone = [
            each for each in self._active if each.phone in phones and kind in {None, each.kind}
        ]
        for active in reversed(undone):
            await self._mend(active)
        return len(undone)

    def active(self, phone: VirtualPhone) -> list[str]:
        """Return the kinds of the faults that last on a phone."""
        return [each.kind for each in self._active if each.phone is phone]

    async def close(self) -> None:
        """Begin and undo nothing any more."""
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _play(self, entry: ScriptedFault, phones: str) -> None:
        if entry.since == "launch":
            (phone,) = self.phones(phones)
            await self._launch_on(phone)
        await asyncio.sleep(entry.at_s)
        try:
            await self.begin(phones, entry.fault, entry.for_s)
        except FaultError as error:
            self._farm.events.record("", "fault_refused", kind=kind_of(entry.fault), why=str(error))

    async def _launch_on(self, phone: VirtualPhone) -> None:
        """Wait for the launch of an app."""
        launched = asyncio.Event()

        def look(event: Event) -> None:
            if event.phone == phone.identity.name and event.kind == "app_launched":
                launched.set()

        self._farm.events.listeners.add(look)
        try:
            await launched.wait()
        finally:
            self._farm.events.listeners.discard(look)

    async def _begin_on(self, phone: VirtualPhone, fault: Fault) -> Active | None:
        kind, facts = kind_of(fault), _flat(settings_of(fault))
        self._farm.events.record(phone.identity.name, "fault", kind=kind, **facts)
        undo = await fault.begin(Stage(self._farm, phone, self._seed(phone, kind)))
        if undo is None:
            return None
        active = Active(phone, kind, undo)
        self._active.append(active)
        return active

    async def _mend_later(self, active: Active, for_s: float) -> None:
        await asyncio.sleep(for_s)
        await self._mend(active)

    async def _mend(self, active: Active) -> None:
        if active not in self._active:
            return
        self._active.remove(active)
        done = active.undo()
        if inspect.isawaitable(done):
            await done
        self._farm.events.record(active.phone.identity.name, "fault_over", kind=active.kind)

    def _seed(self, phone: VirtualPhone, kind: str) -> int:
        ordinal = self._ordinals[phone.udid, kind] = self._ordinals.get((phone.udid, kind), 0) + 1
        text = f"{self._farm.seed}/{phone.udid}/{kind}/{ordinal}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def _flat(settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings as facts of an event: what is no plain value is told as text."""
    plain = str | int | float | bool | None
    return {
        f"with_{name}": value if isinstance(value, plain) else str(value)
        for name, value in settings.items()
    }
