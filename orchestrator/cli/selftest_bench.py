"""Puts the parts of a self-test together: app, eight virtual phones, keepers, verdicts."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio

from orchestrator.cli.app_package import built_app
from orchestrator.cli.compose import DISCOVERY_LIMIT_S
from orchestrator.cli.printing import note
from orchestrator.config.load import load_config
from orchestrator.config.resolved import resolved_yaml
from orchestrator.config.scenario_catalog import SELFTEST
from orchestrator.device.discovery import UsbmuxSource, discover
from orchestrator.device.keeper.broker import KeeperBroker
from orchestrator.device.keeper.start import KeeperStarter
from orchestrator.device.pmd3.browser import UsbmuxBrowser
from orchestrator.device.pmd3.link import Pmd3Link
from orchestrator.domain.deadline import Deadline
from orchestrator.domain.errors import BuildError
from orchestrator.domain.outcome import Outcome, Result
from orchestrator.harness.models import selftest_packages
from orchestrator.report.remake import judge_run
from orchestrator.soak.cells import Cell, Finding, cells_of, sweep_cells
from orchestrator.soak.farm import FarmSpec, virtual_phones
from orchestrator.soak.lock_keys import USBMUX_ENVIRONMENT
from orchestrator.soak.selftest import PHONES, SETTINGS, CellQueue, SelfTest, SelfTestBench
from orchestrator.soak.selftest_result import result_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.config.model import FleetConfig
    from orchestrator.domain.defects import Defect
    from orchestrator.domain.phone import Phone
    from orchestrator.soak.selftest_result import SelfTestResult

_SWIFT_REMEDY: Final = (
    "Install a Swift toolchain: the self-test needs the Swift app, the stand-in has five defects"
)


@dataclass(frozen=True, slots=True)
class SelfTestOptions:
    """The command line of `fleet selftest`, read."""

    defects: Sequence[Defect]
    clean_sessions: int
    seed: int
    sweep: bool
    output: Path | None


async def run_selftest(options: SelfTestOptions) -> tuple[SelfTestResult, str | None]:
    """Run a self-test; return its result and the signal that ended it early, if one did.

    Raises:
        BuildError: Without the Swift app.
        FleetError: If the virtual phones do not start.
    """
    config = load_config(None, SETTINGS)
    kept = options.output or Path(tempfile.mkdtemp(prefix="fleet-selftest-"))
    cells = cells_of(options.defects, options.clean_sessions, options.seed)
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fleet-app-")))
        bench = await _bench(config, folder, kept, stack)
        phones = await _phones(bench.sources)
        test = SelfTest(bench.shared, phones, CellQueue(cells), _judge, _tell)
        findings = list(await test.run())
        swept: list[Finding] | None = None
        if options.sweep and test.interrupted_by is None:
            cells = sweep_cells(options.defects, options.seed)
            test = SelfTest(bench.shared, phones, CellQueue(cells), _judge, _tell_swept)
            swept = list(await test.run())
    result = result_of(findings, swept)
    if options.output is None and result.is_good:
        shutil.rmtree(kept)
    else:
        note(f"run folders: {kept}")
    return result, test.interrupted_by


@dataclass(frozen=True, slots=True)
class _Bench:
    shared: SelfTestBench
    sources: tuple[UsbmuxSource, ...]


async def _bench(config: FleetConfig, folder: Path, output: Path, stack: AsyncExitStack) -> _Bench:
    package = await anyio.to_thread.run_sync(built_app, config, folder, True)
    if package.planned.kind != "swift":
        raise BuildError("fleet selftest needs Swift, and there is none", remedy=_SWIFT_REMEDY)
    spec = FarmSpec(PHONES, config.virtual.memory_scale, folder / "virtual.log")
    farm = await stack.enter_async_context(virtual_phones(spec))
    # The client library reads the address from the environment in places that ignore its argument.
    os.environ[USBMUX_ENVIRONMENT] = farm.usbmux
    starter = await stack.enter_async_context(KeeperStarter())
    broker = KeeperBroker(starter, die_with_parent=True, tunneld=None)

    def link_to(phone: Phone) -> Pmd3Link:
        return Pmd3Link(phone, farm.usbmux, broker)

    shared = SelfTestBench(
        config=config,
        config_yaml=resolved_yaml(config),
        scenario=SELFTEST,
        app=package.planned,
        ipa=package.ipa,
        packages=selftest_packages(config.model.capacity_tokens),
        output=output,
        link_to=link_to,
    )
    return _Bench(shared, (UsbmuxSource("virtual", farm.usbmux),))


async def _phones(sources: Sequence[UsbmuxSource]) -> Sequence[Phone]:
    deadline = Deadline.after(DISCOVERY_LIMIT_S)
    discovery = await discover(sources, UsbmuxBrowser(), deadline=deadline, expected=[])
    return discovery.phones


async def _judge(cell: Cell, run: Path) -> Finding:
    result = await anyio.to_thread.run_sync(judge_run, run)
    verdict = result.phones[0].verdict
    return Finding(
        cell=cell,
        run=run,
        outcome=Outcome(verdict.outcome),
        failed=tuple(check.id for check in verdict.checks if check.result == Result.FAIL),
        explanation=verdict.explanation,
    )


def _tell_swept(finding: Finding) -> None:
    note(f"sweep: {finding.cell.launched_as}: {'caught' if finding.caught else 'not caught'}")


def _tell(finding: Finding) -> None:
    name = finding.cell.launched_as or "clean"
    if finding.is_false_alarm:
        note(f"{name}: FALSE ALARM: {finding.explanation} ({finding.run.name})")
    elif finding.cell.defect is not None and not finding.caught:
        note(f"{name}: NOT CAUGHT: {finding.explanation} ({finding.run.name})")
    else:
        note(f"{name}: {'caught' if finding.cell.defect else 'passes'}")
