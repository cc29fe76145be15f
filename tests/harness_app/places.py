"""Where the app and its sources are."""

from __future__ import annotations

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
PACKAGE: Final = ROOT / "ios_harness"
APP: Final = PACKAGE / "HarnessApp"
PROJECT: Final = APP / "HarnessApp.xcodeproj"
# Built on Apple systems alone: on Linux they can be parsed and no more.
APPLE_ONLY: Final = (APP / "HarnessApp", PACKAGE / "Sources" / "ApplePlatform")
# Written against Apple's frameworks; on Linux the engine compiles against the stand-in.
APPLE_LAYER: Final = (*APPLE_ONLY, PACKAGE / "Sources" / "CoreMLEngine")


def swift_files(*folders: Path) -> list[Path]:
    """Return the Swift sources under folders, sorted."""
    return sorted(file for folder in folders for file in folder.rglob("*.swift"))
