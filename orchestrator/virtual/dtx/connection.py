"""One DTX connection: channels that the host opens, calls on them, events back."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, runtime_checkable

from orchestrator.virtual.dtx.message import (
    Message,
    MessageKind,
    MessageReader,
    decode_arguments,
    decode_pairs,
    encode,
)
from orchestrator.virtual.dtx.nska import Archivable, NSError, archive

if TYPE_CHECKING:
    from orchestrator.virtual.wire import Stream

_log: Final = logging.getLogger(__name__)

MAX_WAITING_EVENTS: Final = 10_000

# How a method fails at an argument of another type: any object may come.
_BAD_ARGUMENT: Final = (TypeError, ValueError, AttributeError, LookupError, OverflowError)

Method: TypeAlias = Callable[..., Any]  # may return an awaitable

_CAPABILITIES: Final = {
    "com.apple.private.DTXBlockCompression": 0,
    "com.apple.private.DTXConnection": 1,
}


class CallError(Exception):
    """A call fails with an NSError."""

    def __init__(self, error: NSError) -> None:
        self.error = error
        super().__init__(str(error))


class ChannelService(Protocol):
    """What answers on a channel."""

    @property
    def methods(self) -> Mapping[str, Method]:
        """Selectors and what they call."""

    def closed(self) -> None:
        """Called once, when the channel or the connection is closed."""


@runtime_checkable
class KeyedReceiver(Protocol):
    """A service that takes messages of named values instead of calls."""

    def received(self, values: dict[Any, Any]) -> None:
        """Take one message."""


class Channel:
    """The phone's voice on one channel.

    Events wait in a bounded queue. When the host is too slow the newest are lost; `must_arrive`
    marks those that never are.
    """

    def __init__(self, connection: DtxConnection, code: int) -> None:
        self._connection, self._code = connection, code

    def call(self, selector: str, *arguments: Archivable, must_arrive: bool = False) -> bool:
        """Call a selector at the host, without an answer; False if the event is lost."""
        message = Message.dispatch(self._connection.next_id(), -self._code, selector, *arguments)
        return self._connection.post(message, must_arrive=must_arrive)

    def push(self, value: Archivable) -> bool:
        """Send an object; False if it is lost."""
        identifier = self._connection.next_id()
        message = Message(MessageKind.OBJECT, identifier, 0, -self._code, archive(value))
        return self._connection.post(message)

    def send_data(self, data: bytes) -> bool:
        """Send bare bytes; False if they are lost."""
        identifier = self._connection.next_id()
        return self._connection.post(
            Message(MessageKind.DATA, identifier, 0, -self._code, payload=data)
        )


ServiceFactory: TypeAlias = Callable[[Channel], ChannelService]


class DtxServer:
    """Serves the same set of channels on every connection."""

    def __init__(self, factories: Mapping[str, ServiceFactory]) -> None:
        self._factories = factories

    async def serve(self, stream: Stream) -> None:
        """Serve one connection until the host leaves."""
        await DtxConnection(stream, self._factories).run()


class DtxConnection:
    """State of one connection. Calls are answered in the order they come."""

    def __init__(self, stream: Stream, factories: Mapping[str, ServiceFactory]) -> None:
        self._stream, self._factories = stream, factories
        self._channels: dict[int, ChannelService] = {}
        self._last_id = 0
        self._outgoing: deque[Message] = deque()
        self._posted = asyncio.Event()
        self._control: Mapping[str, Method] = {
            "_requestChannelWithCode:identifier:": self._open_channel,
            "_channelCanceled:": self._close_channel,
            "_notifyOfPublishedCapabilities:": lambda _capabilities: None,
        }

    def next_id(self) -> int:
        """Return a new message identifier."""
        self._last_id += 1
        return self._last_id

    def post(self, message: Message, *, must_arrive: bool = False) -> bool:
        """Queue a message for the host; False if the queue is full and the message is lost."""
        if len(self._outgoing) >= MAX_WAITING_EVENTS and not must_arrive:
            return False
        self._outgoing.append(message)
        self._posted.set()
        return True

    async def run(self) -> None:
        """Say hello, then answer calls until the host leaves."""
        published = {**dict.fromkeys(self._factories, 1), **_CAPABILITIES}
        hello = Message.dispatch(self.next_id(), 0, "_notifyOfPublishedCapabilities:", published)
        self.post(hello, must_arrive=True)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._send_posted())
                await self._answer_calls()
        finally:
            for service in self._channels.values():
                service.closed()

    async def _send_posted(self) -> None:
        while True:
            await self._posted.wait()
            self._posted.clear()
            while self._outgoing:
                await self._stream.send(encode(self._outgoing.popleft()))

    async def _answer_calls(self) -> None:
        messages = MessageReader(self._stream.reader)
        while True:
            message = await messages.read()
            if message.conversation == 0 and message.kind == MessageKind.DISPATCH:
                result = await self._call(message)
                if message.wants_reply:
                    self.post(_reply(message, result), must_arrive=True)
            elif message.conversation == 0 and message.kind == MessageKind.DATA:
                self._deliver(message)

    def _deliver(self, message: Message) -> None:
        service: object = self._channels.get(message.channel)
        if isinstance(service, KeyedReceiver):
            pairs = decode_pairs(message.arguments)
            service.received({_c_string(key): _c_string(value) for key, value in pairs})

    async def _call(self, message: Message) -> Archivable:
        """Return the result of a call; failures are returned as an `NSError`."""
        selector, arguments = message.selector(), decode_arguments(message.arguments)
        method = self._methods(message.channel).get(selector)
        if method is None:
            text = f"Unable to invoke '{selector}' - it does not respond to the selector"
            return NSError.of("DTXMessage", 1, text)
        try:
            inspect.signature(method).bind(*arguments)
        except TypeError:
            return NSError.of("DTXMessage", 1, f"'{selector}' does not take these arguments")
        try:
            result = method(*arguments)
            return await result if inspect.isawaitable(result) else result
        except CallError as failure:
            return failure.error
        except _BAD_ARGUMENT as error:
            _log.debug("%s: %r", selector, error)
            return NSError.of("DTXMessage", 1, f"'{selector}' does not take these arguments")

    def _methods(self, channel: int) -> Mapping[str, Method]:
        if channel == 0:
            return self._control
        service = self._channels.get(channel)
        return service.methods if service else {}

    def _open_channel(self, code: int, identifier: str) -> None:
        factory = self._factories.get(identifier)
        if factory is None or code in self._channels:
            text = f"Unable to open channel {code} to {identifier}"
            raise CallError(NSError.of("DTXMessage", 1, text))
        self._channels[code] = factory(Channel(self, code))

    def _close_channel(self, code: int) -> None:
        service = self._channels.pop(code, None)
        if service is not None:
            service.closed()


def _c_string(value: object) -> object:
    """Return a text without the NUL that ends it in messages of named values."""
    return value.rstrip("\0") if isinstance(value, str) else value


def _reply(request: Message, result: Archivable) -> Message:
    identifier, channel = request.identifier, request.channel
    if result is None:
        return Message(MessageKind.OK, identifier, 1, channel)
    kind = MessageKind.ERROR if isinstance(result, NSError) else MessageKind.OBJECT
    return Message(kind, identifier, 1, channel, archive(result))
