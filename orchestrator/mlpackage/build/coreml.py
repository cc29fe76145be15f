"""The one door to coremltools: imported when asked for, quiet, and checked for its native parts."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
import logging
import os
import warnings
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeAlias

from orchestrator.domain.errors import UsageError
from orchestrator.domain.extras import how_to_install

if TYPE_CHECKING:
    from collections.abc import Iterator

# coremltools has no types: what `load` returns, and any object that is made with it.
Mil: TypeAlias = Any
MilObject: TypeAlias = Any

_REMEDY = f"Install the extra on Python 3.11: {how_to_install('models')}"


class ModelsExtraError(UsageError):
    """What the `[models]` extra brings is missing or incomplete."""


def load() -> Mil:
    """Return what the builders use of coremltools.

    Returns:
        A namespace: `ct`, `mb` (the op builder), `types`, `Program`, `Function`, `mil_convert`.

    Raises:
        ModelsExtraError: If coremltools is missing, or lacks the native part that writes weights.
    """
    # tqdm reads it once, at its import.
    os.environ.setdefault("TQDM_DISABLE", "1")
    if importlib.util.find_spec("coremltools") is None:
        raise ModelsExtraError("coremltools is not installed", remedy=_REMEDY)
    logging.getLogger("coremltools").setLevel(logging.ERROR)
    # On Linux the import prints eight lines about a proxy that only macOS has.
    with contextlib.redirect_stderr(io.StringIO()):
        ct = importlib.import_module("coremltools")
        mil = importlib.import_module("coremltools.converters.mil.mil")
        converter = importlib.import_module("coremltools.converters.mil.converter")
    # A wheel without it fails after minutes of work, with `BlobWriter not loaded` (issue 2617).
    if importlib.util.find_spec("coremltools.libmilstoragepython") is None:
        raise ModelsExtraError("this coremltools cannot write weights", remedy=_REMEDY)
    return SimpleNamespace(
        ct=ct,
        mb=mil.Builder,
        types=mil.types,
        Program=mil.Program,
        Function=mil.Function,
        mil_convert=converter.mil_convert,
    )


@contextlib.contextmanager
def unclosed_scratch() -> Iterator[None]:
    """Let coremltools drop its scratch folders unclosed: they are removed, with a warning each."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        yield
