# SPDX-License-Identifier: GPL-3.0-or-later
"""Soak lab for on-device LLMs on iPhones.

The names of the Python API are loaded when they are first used: importing this package costs
nothing, and `fleet --help` waits for no library.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orchestrator.api import PhoneRun, Run, load_run, run_soak

__version__ = "0.1.0"
__all__ = ["PhoneRun", "Run", "__version__", "load_run", "run_soak"]


def __getattr__(name: str) -> object:
    if name in __all__:
        return getattr(importlib.import_module("orchestrator.api"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
