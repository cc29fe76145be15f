"""`fleet signoff RUN...`, `fleet signoff keygen`, `fleet signoff verify BUNDLE`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer.core import TyperGroup

from orchestrator.domain.outcome import ExitCode

if TYPE_CHECKING:
    from typer._click import Context

KEY_ENVIRONMENT = "FLEET_SIGNING_KEY"
KEY_HELP = f"Private key; default ${KEY_ENVIRONMENT}, else ~/.config/fleet/signoff.pem."
MAKE = "make"


class RunsFirst(TyperGroup):
    """Takes a first word that is no subcommand for the runs to sign off."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:  # noqa: D102 - of the base
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = [MAKE, *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=RunsFirst,
    rich_markup_mode=None,
    no_args_is_help=True,
    subcommand_metavar="RUN... --release VERSION | COMMAND",
)

Key = Annotated[Path | None, typer.Option(help=KEY_HELP)]


@app.callback()
def signoff() -> None:
    """Hold a release policy against runs; write a signed bundle, or say all that is missing.

    With runs: --release names the version, --require the policy (default fleet.yaml); `fleet
    signoff make --help` shows every option.
    Example: fleet signoff runs/2026* --release 2.3.0 --require policy.yaml
    """


@app.command(MAKE)
def make(
    runs: Annotated[list[Path], typer.Argument(help="Run directories, one or several.")],
    release: Annotated[str, typer.Option(help="The version that is signed off.")],
    require: Annotated[
        Path, typer.Option(help="The policy, or a fleet.yaml with a `release:` block.")
    ] = Path("fleet.yaml"),
    key: Key = None,
    out: Annotated[
        Path | None, typer.Option(help="The bundle's folder; default signoff-VERSION.")
    ] = None,
    pdf: Annotated[bool, typer.Option("--pdf", help="Also a PDF; needs the [pdf] extra.")] = False,
) -> None:
    """Sign off a release.

    Exit codes: 0 signed, 1 a check failed, 2 usage, 4 evidence missing.
    Example: fleet signoff runs/2026* --release 2.3.0 --require policy.yaml
    """
    import time
    from datetime import UTC, datetime

    from orchestrator.report.signoff.bundle import Order, write_bundle
    from orchestrator.report.signoff.decision import Gap, decide
    from orchestrator.report.signoff.evidence import read_all
    from orchestrator.report.signoff.keys import read_signer
    from orchestrator.report.signoff.policy import read_policy
    from orchestrator.report.wording import one_line
    from orchestrator.runlog.layout import safe_name

    policy, signer = read_policy(require), read_signer(key or _default_key())
    evidence = read_all(runs)
    now_s = time.time()
    decision = decide(policy.release, evidence, datetime.fromtimestamp(now_s, UTC).date())
    if not decision.passes:
        print(f"REFUSED: {one_line(release)} is not signed off")
        for reason in decision.reasons:
            print(f"  {reason.gap}: {one_line(reason.text)}")
        failed = any(reason.gap is Gap.FAILED for reason in decision.reasons)
        sys.exit(ExitCode.PRODUCT_FAILED if failed else ExitCode.INCONCLUSIVE)
    target = out or Path(f"signoff-{safe_name(release)}")
    write_bundle(target, Order(release, policy, evidence, decision, now_s, pdf), signer)
    print(f"signed off: {target}")


@app.command()
def keygen(key: Key = None) -> None:
    """Make an Ed25519 key pair: the private half for its owner, KEY.pub for everybody.

    Example: fleet signoff keygen
    """
    from orchestrator.report.signoff.keys import generate_key, public_path

    private = key or _default_key()
    key_id = generate_key(private)
    print(f"key {key_id}\nprivate: {private}\npublic: {public_path(private)}")


@app.command()
def verify(
    bundle: Annotated[Path, typer.Argument(help="The folder that `fleet signoff` wrote.")],
    public_key: Annotated[
        Path | None, typer.Option(help="The key that you trust; default the one beside your own.")
    ] = None,
) -> None:
    """Check a bundle offline and name every changed, missing or added file; exit 1 if there is one.

    Example: fleet signoff verify signoff-2.3.0 --public-key release.pem.pub
    """
    from orchestrator.report.signoff.keys import public_path, read_public_key
    from orchestrator.report.signoff.verify import verify_bundle
    from orchestrator.report.wording import one_line

    trusted = read_public_key(public_key or public_path(_default_key()))
    found = verify_bundle(bundle, trusted)
    for problem in found.problems:
        print(one_line(problem))
    if not found.holds:
        print(f"NOT VALID: {bundle} is not what was signed")
        sys.exit(ExitCode.PRODUCT_FAILED)
    print(f"valid: {one_line(found.app or '')} {found.result}, key {trusted.keyid}")


def _default_key() -> Path:
    named = os.environ.get(KEY_ENVIRONMENT)
    return Path(named) if named else Path.home() / ".config" / "fleet" / "signoff.pem"
