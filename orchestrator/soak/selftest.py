"""Runs the harness with one defect at a time, and without, to prove that the checks can fail.

Each session is a run of its own with one phone: its evidence is judged from its directory like any
other, and nothing in it names the defect. The phones work off one queue side by side.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import anyio

from orchestrator.domain.iphone import by_product_type
from orchestrator.soak.attempts import soak_phone
from orchestrator.soak.plan import Participants, make_plan
from orchestrator.soak.run_directory import RunRecorder, new_run_id
from orchestrator.soak.session import SessionOrder
from orchestrator.soak.signals import stop_on_signal

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence
    from pathlib import Path

    from orchestrator.config.model import FleetConfig
    from orchestrator.config.workload import Scenario
    from orchestrator.device.link import PhoneLink
    from orchestrator.domain.memory_class import MemoryClass
    from orchestrator.domain.phone import Phone
    from orchestrator.harness.models import ModelPackage
    from orchestrator.runlog.documents import PlannedApp
    from orchestrator.soak.cells import Cell, Finding

# Eight phones, four of each class, so that a defect that needs one finds it.
PHONES: Final = (
    ("iPhone 14", "18.5"),
    ("iPhone 15 Pro", "18.6"),
    ("iPhone 14 Plus", "18.5"),
    ("iPhone 16", "18.6"),
    ("iPhone 15", "18.5"),
    ("iPhone 16 Pro", "18.6"),
    ("iPhone 15 Plus", "18.5"),
    ("iPhone 16 Plus", "18.6"),
)
# What a self-test changes in the configuration: budgets that are passed within seconds, a hang that
# is told within seconds, and nothing that waits for a person.
SETTINGS: Final = (
    "policy.budget_tokens.6gb=384",
    "policy.budget_tokens.8gb=640",
    "checks.hang.none.no_token_limit_s=4",
    "checks.telemetry.complete.end_silence_limit_s=1.5",
    "evidence.report_wait_s=5",
)


class CellQueue:
    """Sessions that wait for a phone: long ones first, so that none is left over at the end."""

    def __init__(self, cells: Iterable[Cell]) -> None:
        self._waiting = deque(sorted(cells, key=_urgency))

    def take(self, memory_class: MemoryClass) -> Cell | None:
        """Return the next session that a phone of a class can have, None where there is none."""
        for cell in self._waiting:
            if cell.defect is None or cell.defect.needs in (None, memory_class):
                self._waiting.remove(cell)
                return cell
        return None


def _urgency(cell: Cell) -> tuple[bool, bool, bool]:
    defect = cell.defect
    return (defect is None or not defect.slow, defect is None or defect.needs is None, not defect)


@dataclass(frozen=True, slots=True)
class SelfTestBench:
    """What all sessions of a self-test share."""

    config: FleetConfig
    config_yaml: str
    scenario: Scenario
    app: PlannedApp
    ipa: Path
    packages: Sequence[ModelPackage]
    output: Path
    link_to: Callable[[Phone], PhoneLink]


@dataclass(slots=True)
class SelfTest:
    """All sessions of a self-test, one after another on each phone.

    Attributes:
        judge: Makes the finding of a session whose run directory is complete.
        tell: Is given each finding as it comes.
    """

    bench: SelfTestBench
    phones: Sequence[Phone]
    queue: CellQueue
    judge: Callable[[Cell, Path], Awaitable[Finding]]
    tell: Callable[[Finding], None]
    stop: anyio.Event = field(default_factory=anyio.Event)
    interrupted_by: str | None = None
    findings: list[Finding] = field(default_factory=list)

    async def run(self) -> list[Finding]:
        """Run until the queue is empty, or a signal came, and return the findings."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stop_on_signal, self.stop, self._note_signal)
            async with anyio.create_task_group() as workers:
                for phone in self.phones:
                    workers.start_soon(self._work, phone)
            tasks.cancel_scope.cancel()
        return self.findings

    def _note_signal(self, name: str) -> None:
        self.interrupted_by = name

    async def _work(self, phone: Phone) -> None:
        model = by_product_type(phone.product_type)
        while model is not None and not self.stop.is_set():
            cell = self.queue.take(model.memory_class)
            if cell is None:
                return
            run = await self._soak(cell, phone)
            if not self.stop.is_set():
                finding = await self.judge(cell, run)
                self.findings.append(finding)
                self.tell(finding)

    async def _soak(self, cell: Cell, phone: Phone) -> Path:
        bench = self.bench
        plan = make_plan(
            new_run_id(time.time()),
            cell.seed,
            bench.config,
            bench.scenario,
            Participants((phone,), (), ()),
            bench.app,
            {package.quantization: package for package in bench.packages},
        )
        recorder = RunRecorder.begin(bench.output, plan, bench.config_yaml, virtual=True)
        order = SessionOrder(
            plan=plan,
            phone=plan.phones[0],
            ipa=bench.ipa,
            packages=bench.packages,
            duration_s=bench.scenario.duration_s,
            defect=cell.launched_as,
            min_battery_percent=bench.config.gate.min_battery_percent,
            report_wait_s=bench.config.evidence.report_wait_s,
        )
        await soak_phone(order, bench.link_to(phone), recorder, self.stop)
        recorder.finish(self.interrupted_by)
        return recorder.paths.root
