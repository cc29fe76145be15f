"""What a soak ran in: the first words of the app, its model and its first readings.

The same numbers mean other things on another OS build, on a warm phone or with another package,
so that every page states them beside the result.
"""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.runlog.telemetry import AnyRecord, Hello, Load, Sample


@dataclass(slots=True)
class Environment:
    """Filled record by record; None where the phone never said."""

    hello: Hello | None = None  # of the first launch
    load: Load | None = None  # of the first launch
    first_sample: Sample | None = None
    last_sample: Sample | None = None

    def observe(self, record: AnyRecord) -> None:
        """Take the next record."""
        match record:
            case Sample():
                self.first_sample = self.first_sample or record
                self.last_sample = record
            case Hello():
                self.hello = self.hello or record
            case Load():
                self.load = self.load or record
            case _:
                pass
