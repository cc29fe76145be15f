"""All fuzz targets by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.fuzz import ips, phones

if TYPE_CHECKING:
    from tests.fuzz.driver import Target

TARGETS: dict[str, Target] = {
    "ips": ips.TARGET,
    **phones.TARGETS,
}
