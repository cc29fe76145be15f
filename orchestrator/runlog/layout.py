"""Names inside a run directory. The layout is relied on from outside."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+")


def safe_name(text: str) -> str:
    """Return a text from a phone or a person as one harmless path component."""
    return _UNSAFE.sub("_", text).strip("._")[:64] or "unnamed"


def _is_number(name: str) -> bool:
    return name.isascii() and name.isdigit()


def device_directory_name(alias: str, udid: str) -> str:
    """Return `<alias>-<last 8 of UDID>`."""
    return f"{safe_name(alias)}-{safe_name(udid)[-8:]}"


@dataclass(frozen=True, slots=True)
class AttemptPaths:
    """Files of one attempt on one phone."""

    root: Path

    @property
    def health(self) -> Path:
        """Readings of the health gate."""
        return self.root / "health.json"

    @property
    def console(self) -> Path:
        """What the app printed."""
        return self.root / "console.log"

    @property
    def evidence(self) -> Path:
        """What the host saw besides telemetry."""
        return self.root / "evidence.json"

    @property
    def reports(self) -> Path:
        """Raw diagnostic reports, device paths kept."""
        return self.root / "reports"

    def stream(self, launch: int) -> Path:
        """Records as they arrived live, launches counted from 1."""
        return self.root / "launches" / str(launch) / "stream.ndjson"

    def journal(self, launch: int) -> Path:
        """The journal pulled from the phone."""
        return self.root / "launches" / str(launch) / "journal.ndjson"


@dataclass(frozen=True, slots=True)
class DevicePaths:
    """Files of one phone."""

    root: Path

    @property
    def device(self) -> Path:
        """What the phone says of itself."""
        return self.root / "device.json"

    @property
    def verdict(self) -> Path:
        """Derived: the phone's verdict."""
        return self.root / "verdict.json"

    @property
    def telemetry(self) -> Path:
        """Merged, complete records of all launches, in order."""
        return self.root / "telemetry.ndjson"

    def attempt(self, number: int) -> AttemptPaths:
        """Return the files of an attempt, counted from 1."""
        return AttemptPaths(self.root / "attempts" / str(number))

    def attempts(self) -> list[AttemptPaths]:
        """Return the attempts there are, in order."""
        folder = self.root / "attempts"
        numbers = sorted(int(p.name) for p in folder.glob("*") if _is_number(p.name))
        return [self.attempt(number) for number in numbers]


@dataclass(frozen=True, slots=True)
class RunPaths:
    """Files of one run."""

    root: Path

    @property
    def run(self) -> Path:
        """Who ran, since when."""
        return self.root / "run.json"

    @property
    def plan(self) -> Path:
        """Written before any phone is touched."""
        return self.root / "plan.json"

    @property
    def config(self) -> Path:
        """The configuration as it was resolved."""
        return self.root / "config.resolved.yaml"

    @property
    def events(self) -> Path:
        """The host's remarks."""
        return self.root / "events.ndjson"

    @property
    def manifest(self) -> Path:
        """SHA-256 of the evidence, never rewritten."""
        return self.root / "MANIFEST.sha256"

    @property
    def junit(self) -> Path:
        """Derived: JUnit XML."""
        return self.root / "junit.xml"

    @property
    def summary_json(self) -> Path:
        """Derived: the summary for machines."""
        return self.root / "summary.json"

    @property
    def summary_md(self) -> Path:
        """Derived: the summary for people."""
        return self.root / "summary.md"

    @property
    def html(self) -> Path:
        """Derived: the self-contained page."""
        return self.root / "report" / "index.html"

    def device(self, directory: str) -> DevicePaths:
        """Return the files of one phone."""
        return DevicePaths(self.root / "devices" / directory)
