"""Check of the model package: the one for this phone was loaded."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from orchestrator.runlog.telemetry import AnyRecord, Hello, Load
from orchestrator.verdict.check import Check, CheckInfo, Setting
from orchestrator.verdict.checks.budget import class_conflict

if TYPE_CHECKING:
    from orchestrator.runlog.documents import CheckDocument
    from orchestrator.verdict.check import Closing

_BITS_TOLERANCE = 0.05  # scales and zero points of a real package add a little


class QuantMatchesDevice(Check):
    """The loaded package is the one that the host pushed for this phone's class."""

    info = CheckInfo(
        id="quant.matches-device",
        title="The quantization fits the phone",
        meaning=(
            "The digest of the loaded package is that of the package for the phone's memory class"
            " (8-bit from the 8 GB class up, else 4-bit), and its weights read back as that wide."
        ),
        causes=(
            "the class is told by `physicalMemory >= 8 GiB`, which no 8 GB iPhone reports",
            "the 8-bit package is loaded without asking",
            "a package cached from an earlier build",
        ),
        what_to_do=(
            "choose the package by bands of `physicalMemory`, never by `>= 8 GiB`",
            "see which digest the app loaded: the `load` record",
        ),
    )

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._bits: float | None = None
        self._has_own_model = False

    def observe(self, record: AnyRecord) -> None:
        """Take the next record."""
        if isinstance(record, Hello):
            # Of an app that was given with --ipa; ours takes what the host pushes.
            is_given = self.setting.plan.app.kind == "supplied"
            self._has_own_model = is_given and record.engine == "custom"
        if not isinstance(record, Load):
            return
        self._bits = record.bits_per_weight
        expected = self.setting.phone.expected
        if self._has_own_model:
            return
        if record.digest != expected.digest:
            self.faults.add(
                record,
                f"a package of {record.bits_per_weight:g} bits per weight was loaded that is not"
                f" the {expected.quantization} package for class {expected.memory_class}",
                record.bits_per_weight,
            )
        elif not math.isclose(
            record.bits_per_weight, expected.bits_per_weight, rel_tol=_BITS_TOLERANCE
        ):
            self.faults.add(
                record,
                f"the weights read back as {record.bits_per_weight:g} bits each",
                record.bits_per_weight,
            )

    def finish(self, closing: Closing) -> CheckDocument:
        """Return the result; the value is bits per weight."""
        if self._bits is None:
            return self.unmeasured("no model was loaded")
        if self._has_own_model:
            return self.unmeasured("the app has a model of its own: the host's was not loaded")
        conflict = class_conflict(self.setting)
        if conflict is not None:
            return self.unmeasured(conflict)
        limit = self.setting.phone.expected.bits_per_weight
        if self.faults.count:
            return self.failed(self.faults.value, "bits/weight", limit)
        return self.passed(self._bits, "bits/weight", limit)
