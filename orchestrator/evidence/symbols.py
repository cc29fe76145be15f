"""Names for the calls of a crash, from dSYMs. Needs the optional extra `symbols`.

The library is symbolic, by Sentry; it reads DWARF of Mach-O files on every system, so that a crash
of a phone can be named where there is no Xcode.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final, Self

from orchestrator.domain.extras import how_to_install

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from orchestrator.evidence.frames import Backtrace, Frame

_DWARF_FOLDER: Final = "Contents/Resources/DWARF"


class UnusableSymbolsError(Exception):
    """The extra is missing, or a path holds no symbols; `str()` is one plain sentence."""


class Symbolicator:
    """Looks up image offsets in the symbols of one or more binaries.

    Made with `opened`.
    """

    def __init__(self, caches: dict[str, Any]) -> None:
        self._caches = caches  # by LC_UUID, plain

    @classmethod
    def opened(cls, paths: Sequence[Path]) -> Self:
        """Open dSYM bundles, or bare Mach-O files with DWARF.

        Raises:
            UnusableSymbolsError: If the extra is not installed, or a path has no symbols.
        """
        library = _library()
        caches: dict[str, Any] = {}
        for path in paths:
            found = _caches_of(library, path)
            if not found:
                raise UnusableSymbolsError(f"{path}: holds no debug symbols")
            caches |= found
        return cls(caches)

    def named(self, backtrace: Backtrace) -> list[str]:
        """Return one text per call, inlined ones included: `function (file:line)`, or an offset."""
        calls = enumerate(backtrace.frames)
        return [text for depth, frame in calls for text in self._named(frame, is_caller=depth > 0)]

    def _named(self, frame: Frame, *, is_caller: bool) -> list[str]:
        cache = self._caches.get(_plain(frame.image_uuid or ""))
        if cache is None or not frame.offset:
            return [_unnamed(frame)]
        # A caller's address is where it goes on; the call is the instruction before.
        locations = cache.lookup(frame.offset - is_caller)
        return [_located(location) for location in locations] or [_unnamed(frame)]


def _library() -> Any:  # noqa: ANN401 - an optional library without a type when it is absent
    try:
        return importlib.import_module("symbolic")
    except ImportError as error:
        raise UnusableSymbolsError(
            f"--dsym needs the extra `symbols`: {how_to_install('symbols')}"
        ) from error


def _caches_of(library: Any, path: Path) -> dict[str, Any]:  # noqa: ANN401 - see `_library`
    folder = path / _DWARF_FOLDER
    files = sorted(folder.iterdir()) if folder.is_dir() else [path]
    caches: dict[str, Any] = {}
    for file in files:
        try:
            archive = library.Archive.open(str(file))
            objects = list(archive.iter_objects())
            caches |= {_plain(_uuid_of(one)): one.make_symcache() for one in objects}
        except (library.SymbolicError, OSError) as error:
            raise UnusableSymbolsError(f"{file}: cannot be read: {error}") from error
    return caches


def _uuid_of(one: Any) -> str:  # noqa: ANN401 - see `_library`
    return str(one.code_id or one.debug_id)


def _plain(uuid: str) -> str:
    return uuid.replace("-", "").casefold()[:32]


def _located(location: Any) -> str:  # noqa: ANN401 - see `_library`
    if not location.full_path or not location.line:  # the compiler's own code
        return str(location.symbol)
    return f"{location.symbol} ({location.full_path}:{location.line})"


def _unnamed(frame: Frame) -> str:
    if frame.symbol is not None:
        return f"{frame.symbol} in {frame.image or 'an unknown image'}"
    offset = "an unknown offset" if frame.offset is None else f"{frame.offset:#x}"
    return f"{frame.image or 'an unknown image'} + {offset}"
