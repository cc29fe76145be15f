"""`fleet soak`: the composition root of a run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli.cluster_access import CertificatesOption, ClusterOption, cluster_access
from orchestrator.cli.soak_options import (
    ConfigOption,
    DevicesOption,
    DurationOption,
    ScenarioOption,
    SeedOption,
    SettingsOption,
    config_in_use,
    duration_seconds,
)
from orchestrator.domain.errors import UsageError

app = typer.Typer(rich_markup_mode=None)


@app.command()
def soak(
    devices: DevicesOption = "all",
    virtual: Annotated[
        bool, typer.Option("--virtual", help="Start virtual phones for this run and soak those.")
    ] = False,
    duration: DurationOption = None,
    scenario: ScenarioOption = None,
    output: Annotated[Path, typer.Option(help="Where run folders and `latest` go.")] = Path("runs"),
    config: ConfigOption = None,
    settings: SettingsOption = None,
    seed: SeedOption = 1,
    json: Annotated[bool, typer.Option("--json", help="Print summary.json on stdout.")] = False,
    include_unlisted: Annotated[
        bool, typer.Option("--include-unlisted", help="Also soak other models and older iOS.")
    ] = False,
    until: Annotated[
        str | None, typer.Option(help="Stop at HH:MM, local time, with what there is: 06:30.")
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait for phones that another run holds.")
    ] = False,
    ipa: Annotated[
        Path | None, typer.Option(help="A signed app (.ipa or .app) instead of building ours.")
    ] = None,
    bundle_id: Annotated[
        str | None, typer.Option(help="The bundle id that --ipa must have.")
    ] = None,
    cluster: ClusterOption = None,
    certificates: CertificatesOption = None,
) -> None:
    """Soak phones and state per phone whether budget and trim contract held, and the cause if not.

    Examples: fleet soak --devices all --virtual; fleet soak --devices "model = iPhone 16"
    --duration 8h; fleet soak --cluster tls://mini-1.local:8786.
    """
    import anyio

    from orchestrator.cli.compose import SoakOptions, run_soak
    from orchestrator.cli.conclusion import conclude
    from orchestrator.config.load import load_config

    options = SoakOptions(
        devices=devices,
        virtual=virtual,
        duration_s=duration_seconds(duration),
        scenario=scenario,
        output=output,
        config=config_in_use(config),
        settings=tuple(settings or ()),
        seed=seed,
        include_unlisted=include_unlisted,
        until_s=_until_s(until),
        wait=wait,
        ipa=given_app(ipa, bundle_id),
        bundle_id=bundle_id,
    )
    if cluster is None:
        run, summary = anyio.run(run_soak, options)
    else:
        if virtual:
            raise UsageError(
                "--virtual starts phones for a single host",
                remedy="Serve them where the agents are: `fleet virtual serve`",
            )
        access = cluster_access(cluster, certificates, option="--cluster")
        from orchestrator.cli.cluster_soak import run_cluster_soak

        run, summary = anyio.run(run_cluster_soak, options, access)
    loaded = load_config(options.config, options.settings)
    sys.exit(conclude(run, summary, loaded, json=json))


def given_app(ipa: Path | None, bundle_id: str | None) -> Path | None:
    """Return `--ipa`, which must be there, as `--bundle-id` must not be without it.

    Raises:
        UsageError: Otherwise.
    """
    if ipa is None and bundle_id is not None:
        raise UsageError("--bundle-id goes with --ipa", remedy="Set harness.bundle_id for our app")
    if ipa is not None and not ipa.exists():
        raise UsageError(f"--ipa: {ipa} is not there", remedy="`fleet build` makes one")
    return ipa


def _until_s(text: str | None) -> float | None:
    from datetime import UTC, datetime

    from orchestrator.soak.window_end import next_occurrence

    if text is None:
        return None
    try:
        return next_occurrence(text, datetime.now(UTC).astimezone()).timestamp()
    except ValueError as error:
        raise UsageError(f"--until: {error}") from error
