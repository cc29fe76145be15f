"""Puts an agent together from its command line, its bundle and its configuration."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio

from orchestrator.cli.printing import note
from orchestrator.cluster.address import AGENT_PORT, parse_address
from orchestrator.cluster.bundle import default_bundle, read_bundle
from orchestrator.cluster.extra import require_cluster
from orchestrator.config.fields import check_alias
from orchestrator.config.load import load_config
from orchestrator.device.pmd3.browser import UsbmuxBrowser
from orchestrator.domain.errors import UsageError
from orchestrator.soak.signals import stop_on_signal
from orchestrator.soak.state_folder import state_folder

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.cluster.agent import Agent


@dataclass(frozen=True, slots=True)
class AgentArguments:
    """The command line of `fleet agent`, read."""

    scheduler: str | None
    name: str | None
    listen: str
    contact: str | None
    folder: Path | None
    config: Path | None
    certificates: Path | None
    min_free_bytes: int


async def run_agent(arguments: AgentArguments) -> None:
    """Run an agent until SIGINT or SIGTERM.

    Raises:
        UsageError: If it cannot start, or the scheduler refuses it.
    """
    require_cluster()
    from orchestrator.cluster.agent import Agent, AgentOptions
    from orchestrator.cluster.attached import AttachedPhones
    from orchestrator.cluster.security import prepare_dask, security_for

    prepare_dask()
    config = load_config(arguments.config)
    scheduler_url, name = _identity(arguments)
    scheduler = parse_address(scheduler_url, option="--scheduler")
    listen = parse_address(arguments.listen, option="--listen", port=AGENT_PORT)
    if listen.protocol != scheduler.protocol:
        raise UsageError(f"--listen {listen} and --scheduler {scheduler} differ in protocol")
    contact = arguments.contact
    if contact is not None:
        contact = str(parse_address(contact, option="--contact", port=listen.port))
    options = AgentOptions(
        name=name,
        scheduler=scheduler,
        listen=listen,
        contact=contact,
        folder=(arguments.folder or state_folder() / "agent").absolute(),
        security=security_for(scheduler, arguments.certificates),
        min_free_bytes=arguments.min_free_bytes,
    )
    agent = Agent(options, AttachedPhones(config, UsbmuxBrowser()), note)
    stop = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stop_on_signal, stop, lambda _: None)
        refusal = await _until_stopped(agent, stop)
        tasks.cancel_scope.cancel()
    if refusal is not None:
        raise refusal


async def _until_stopped(agent: Agent, stop: anyio.Event) -> UsageError | None:
    try:
        await agent.run(stop)
    except UsageError as error:  # raised outside the task group, so that it stays one error
        return error
    return None


def _identity(arguments: AgentArguments) -> tuple[str, str]:
    """Return the scheduler and this host's name: as given, else as the bundle says."""
    scheduler, name = arguments.scheduler, arguments.name
    if scheduler is None or (name is None and scheduler.startswith("tls")):
        config = read_bundle(arguments.certificates or default_bundle()).config
        scheduler, name = scheduler or config.scheduler, name or config.member
    name = name or platform.node().partition(".")[0]
    try:
        return scheduler, check_alias(name)
    except ValueError as error:
        raise UsageError(f"--name {name!r}: {error}") from error
