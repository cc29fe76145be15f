"""Checks of the token budget: it is kept, and it is the one this phone must have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.domain.memory_class import memory_class_of
from orchestrator.runlog.telemetry import AnyRecord, Evict, Hello, Prefill, Sample, Tokens, Trim
from orchestrator.verdict.check import Check, CheckInfo, Setting

if TYPE_CHECKING:
    from orchestrator.runlog.documents import CheckDocument, DeviceDocument
    from orchestrator.verdict.check import Closing


def class_conflict(setting: Setting) -> str | None:
    """Return why the phone's class is not certain, None where it is.

    The class is the phone's own, from lockdown and sysmontap; what the app believes is no source.
    """
    measured = _measured_class(setting.device)
    expected = setting.phone.expected.memory_class
    if measured is None:
        return "the phone's memory class was not measured"
    if measured != expected:
        return f"the phone measures as {measured}, the plan expected {expected}"
    return None


def _measured_class(device: DeviceDocument | None) -> str | None:
    if device is None:
        return None
    if device.physical_memory_bytes is None:
        return device.memory_class
    found = memory_class_of(device.physical_memory_bytes)
    return found.value if found else "below 6gb"


class BudgetNeverExceeded(Check):
    """At no prediction more rows than the phone's budget, by its records and by the prediction."""

    info = CheckInfo(
        id="budget.never-exceeded",
        title="The context never passes the token budget",
        meaning=(
            "No record and no predicted step shows more rows in the KV state than the budget of"
            " this phone's memory class, and no padded chunk passes the model's capacity."
        ),
        causes=(
            "the trim is missing or one step late",
            "the trim keeps half a budget although more than half a budget arrives",
            "the budget of a larger memory class is used",
        ),
        what_to_do=(
            "look at the deciding record: its `n`, and whether a `trim` stands before it",
            "test the budget before each prediction, not after it",
        ),
    )

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._most = 0
        self._limit = setting.phone.expected.budget_tokens
        self._capacity = setting.phone.expected.capacity_tokens

    def observe(self, record: AnyRecord) -> None:
        """Take the next record."""
        rows = self._rows_of(record)
        if rows is None:
            return
        rows = max(rows, self.setting.expectation.row_count)
        self._most = max(self._most, rows)
        if rows > self._limit:
            self.faults.add(record, f"{rows} rows pass the budget of {self._limit}", rows)

    def _rows_of(self, record: AnyRecord) -> int | None:
        match record:
            case Tokens():
                return max(record.n, default=0)
            case Prefill():
                return self._chunk_rows(record)
            case Trim() | Evict():
                return record.before
            case Sample():
                return record.n
            case _:
                return None

    def _chunk_rows(self, record: Prefill) -> int:
        padded = record.start + len(record.ids) + record.pad
        if record.pad < 0 or padded > self._capacity:
            text = f"a padded chunk ends at row {padded} of a capacity of {self._capacity}"
            self.faults.add(record, text, padded)
        return record.start + len(record.ids)

    def finish(self, closing: Closing) -> CheckDocument:
        """Return the result; the value is the most rows seen."""
        if self.faults.count:
            return self.failed(self._most, "tokens", self._limit)
        if not self._most:
            return self.unmeasured("no prediction was recorded")
        return self.passed(self._most, "tokens", self._limit)


class BudgetMatchesDevice(Check):
    """The app chose the budget of the phone it runs on."""

    info = CheckInfo(
        id="budget.matches-device",
        title="The token budget fits the phone",
        meaning=(
            "The budget that the app declares is the policy's for the phone's memory class, which"
            " the host read from the phone itself."
        ),
        causes=(
            "the class is told by `physicalMemory >= 8 GiB`, which no 8 GB iPhone reports",
            "a budget left over from another phone or an experiment",
        ),
        what_to_do=(
            "choose the budget by bands of `physicalMemory` (docs/explanation/budgets.md)",
            "compare `hello.budget_inputs` of the app with `policy.budget_tokens` of fleet.yaml",
        ),
    )

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._budget: int | None = None

    def observe(self, record: AnyRecord) -> None:
        """Take the next record."""
        if not isinstance(record, Hello):
            return
        self._budget = record.budget
        expected = self.setting.phone.expected
        if record.budget != expected.budget_tokens:
            self.faults.add(
                record,
                f"the app uses a budget of {record.budget}; a phone of class"
                f" {expected.memory_class} has {expected.budget_tokens}",
                record.budget,
            )

    def finish(self, closing: Closing) -> CheckDocument:
        """Return the result; the value is the declared budget."""
        if self._budget is None:
            return self.unmeasured("the app never said its budget")
        conflict = class_conflict(self.setting)
        if conflict is not None:
            return self.unmeasured(conflict)
        limit = self.setting.phone.expected.budget_tokens
        if self.faults.count:
            return self.failed(self.faults.value, "tokens", limit)
        return self.passed(self._budget, "tokens", limit)
