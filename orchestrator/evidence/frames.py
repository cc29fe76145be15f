"""The backtrace of a crash: where in which image the thread stood. Addresses are image offsets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from orchestrator.evidence.fields import count, mapping, text

if TYPE_CHECKING:
    from orchestrator.evidence.fields import Json

MOST_FRAMES: Final = 512  # endless recursion fills a report with more of the same


@dataclass(frozen=True, slots=True)
class Frame:
    """One call."""

    image: str | None  # name of the binary
    image_uuid: str | None  # LC_UUID, as printed
    offset: int | None  # bytes from the start of the image
    symbol: str | None  # where the phone knew it


@dataclass(frozen=True, slots=True)
class Backtrace:
    """The calls of one thread, innermost first."""

    frames: tuple[Frame, ...]
    arch: str | None  # of the process's binary: `arm64`, `arm64e`


def faulting_backtrace(body: Json) -> Backtrace | None:
    """Return the backtrace of the thread that crashed, None where the report has none."""
    thread = _faulting_thread(body)
    images = _objects(body.get("usedImages"))
    frames = _objects(thread.get("frames"))[:MOST_FRAMES]
    if not frames:
        return None
    arch = next((text(image, "arch") for image in images if text(image, "arch")), None)
    return Backtrace(tuple(_frame(frame, images) for frame in frames), arch)


def _faulting_thread(body: Json) -> Json:
    threads = _objects(body.get("threads"))
    number = count(body, "faultingThread")
    if number is not None and number < len(threads):
        return threads[number]
    return next((thread for thread in threads if thread.get("triggered") is True), {})


def _frame(frame: Json, images: list[Json]) -> Frame:
    index = count(frame, "imageIndex")
    image = images[index] if index is not None and index < len(images) else mapping({}, "")
    return Frame(
        image=text(image, "name"),
        image_uuid=text(image, "uuid"),
        offset=count(frame, "imageOffset"),
        symbol=text(frame, "symbol"),
    )


def _objects(value: object) -> list[Json]:
    # An entry of another type keeps its place: frames name images by their index.
    items = value if isinstance(value, list) else []
    return [item if isinstance(item, dict) else {} for item in items]
