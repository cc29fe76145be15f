"""`fleet agent`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli.cluster_access import CertificatesOption  # noqa: TC001 - typer reads it
from orchestrator.cli.soak_options import config_in_use

app = typer.Typer(rich_markup_mode=None)


@app.command()
def agent(
    scheduler: Annotated[
        str | None, typer.Option(help="tls://HOST:PORT; default as the bundle says.")
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="This host's name in plans; default as the bundle says.")
    ] = None,
    listen: Annotated[str, typer.Option(help="Its one port.")] = "tls://0.0.0.0:8790",
    contact: Annotated[
        str | None, typer.Option(help="How others reach it, where that is another address.")
    ] = None,
    folder: Annotated[
        Path | None, typer.Option(help="Its runs; default `agent` in the state folder.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="fleet.yaml of this host: its sources and aliases.")
    ] = None,
    certificates: CertificatesOption = None,
    min_free_mib: Annotated[
        int, typer.Option(min=0, help="Free space without which no run begins or goes on.")
    ] = 256,
) -> None:
    """Offer this host's phones to a cluster until SIGTERM or Ctrl-C.

    Runs go on in processes of their own: an agent that is started again takes them up.
    Example: fleet agent --scheduler tls://mini-1.local:8786 --name mini-2
    """
    import anyio

    from orchestrator.cli.agent_run import AgentArguments, run_agent

    anyio.run(
        run_agent,
        AgentArguments(
            scheduler=scheduler,
            name=name,
            listen=listen,
            contact=contact,
            folder=folder,
            config=config_in_use(config),
            certificates=certificates,
            min_free_bytes=min_free_mib << 20,
        ),
    )
