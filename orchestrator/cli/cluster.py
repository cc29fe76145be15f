"""`fleet cluster init` and `fleet cluster scheduler`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli.cluster_access import CertificatesOption  # noqa: TC001 - typer reads it

app = typer.Typer(rich_markup_mode=None, no_args_is_help=True)


@app.callback()
def cluster() -> None:
    """Several hosts as one fleet; docs/cluster.md goes from two bare hosts to a nightly run.

    Example: fleet cluster scheduler --certificates certificates/scheduler
    """


@app.command()
def init(
    folder: Annotated[Path, typer.Argument(help="Gets the authority and a bundle per member.")],
    scheduler: Annotated[
        str, typer.Option(help="Where the scheduler will listen: tls://HOST:PORT.")
    ],
    agents: Annotated[str, typer.Option(help="Names of the hosts with phones: mini-1,mini-2.")],
    days: Annotated[int, typer.Option(min=1, max=3650, help="How long they last.")] = 825,
) -> None:
    """Make the certificates of a cluster: an authority, scheduler, client, and each agent.

    Called again, it makes what is missing: the bundle of a host that joins.
    Example: fleet cluster init certificates --scheduler tls://mini-1.local --agents mini-1,mini-2
    """
    from orchestrator.cluster.address import parse_address
    from orchestrator.cluster.certificates import make_bundles
    from orchestrator.config.fields import check_alias
    from orchestrator.domain.errors import UsageError

    address = parse_address(scheduler, option="--scheduler")
    names = [name.strip() for name in agents.split(",") if name.strip()]
    try:
        checked = [check_alias(name) for name in names]
    except ValueError as error:
        raise UsageError(f"--agents {agents!r}: {error}") from error
    made = make_bundles(folder, str(address), checked, days)
    for member, bundle in made.items():
        print(f"{member:<16} {bundle}")
    if not made:
        print("nothing was missing")


@app.command()
def scheduler(
    listen: Annotated[
        str, typer.Option(help="Its one port; tcp:// on loopback alone.")
    ] = "tls://0.0.0.0:8786",
    certificates: CertificatesOption = None,
) -> None:
    """Run the scheduler until SIGTERM or Ctrl-C; it keeps nothing and may be started anew.

    Example: fleet cluster scheduler --certificates certificates/scheduler
    """
    import anyio

    from orchestrator.cli.cluster_access import cluster_access
    from orchestrator.soak.signals import stop_on_signal

    access = cluster_access(listen, certificates, option="--listen")
    from orchestrator.cluster.scheduler import serve_scheduler

    async def serve() -> None:
        stop = anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stop_on_signal, stop, lambda _: None)
            await serve_scheduler(
                access.address,
                access.security,
                lambda address: print(f"scheduler at {address}", flush=True),
                stop,
            )
            tasks.cancel_scope.cancel()

    anyio.run(serve)
