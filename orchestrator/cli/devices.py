"""`fleet devices`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli.cluster_access import CertificatesOption, ClusterOption, cluster_access
from orchestrator.cli.soak_options import config_in_use
from orchestrator.domain.errors import NoPhoneError

app = typer.Typer(rich_markup_mode=None)


@app.command()
def devices(
    config: Annotated[Path | None, typer.Option(help="The configuration.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print a JSON list on stdout.")] = False,
    cluster: ClusterOption = None,
    certificates: CertificatesOption = None,
) -> None:
    """List the phones that are attached, with their alias, model, iOS and UDID.

    Examples: fleet devices --json; fleet devices --cluster tls://mini-1.local:8786
    """
    import anyio
    import msgspec

    from orchestrator.cli.attached import listed_phones

    if cluster is None:
        rows, remarks = anyio.run(listed_phones, config_in_use(config))
    else:
        access = cluster_access(cluster, certificates, option="--cluster")
        from orchestrator.cli.roster import listed_in_cluster

        rows, remarks = anyio.run(listed_in_cluster, access)
    if json:
        print(msgspec.json.format(msgspec.json.encode(rows), indent=2).decode())
    else:
        for row in rows:
            host = "" if row.host is None else f"{row.host:<12} "
            print(f"{host}{row.alias:<16} {row.model:<18} iOS {row.os:<8} {row.udid}  {row.note}")
    from orchestrator.cli.printing import note

    for remark in remarks:
        note(remark)
    if not rows:
        raise NoPhoneError(
            "no phone is attached", remedy="Connect an iPhone, or try `fleet virtual serve`"
        )
