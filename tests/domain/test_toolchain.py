from pathlib import Path

import pytest

from orchestrator.domain.toolchain import SWIFT_PAGE, how_to_get_swift

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("platform", "hint"),
    [
        ("darwin", "xcode-select --install"),
        ("linux", "swift.org/install/linux"),
        ("x", "swift.org"),
    ],
)
def test_every_platform_is_told_how_to_get_swift(platform: str, hint: str) -> None:
    assert hint in how_to_get_swift(platform)
    assert SWIFT_PAGE in how_to_get_swift(platform)
    assert (ROOT / SWIFT_PAGE).is_file()
