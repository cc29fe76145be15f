"""`fleet quarantine list|add|remove`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.domain.errors import UsageError

app = typer.Typer(rich_markup_mode=None, no_args_is_help=True)


@app.callback()
def quarantine() -> None:
    """Phones that are out of the lab for a while, each with a reason.

    A phone gets there by itself after repeated lab errors (quarantine: in fleet.yaml).
    Example: fleet quarantine list
    """


@app.command("list")
def list_(
    json: Annotated[bool, typer.Option("--json", help="Print a JSON list on stdout.")] = False,
) -> None:
    """List the phones in quarantine.

    Example: fleet quarantine list --json
    """
    import msgspec

    from orchestrator.cli.printing import note
    from orchestrator.soak.ledger import Ledger

    now_s = time.time()
    held = [n for n in Ledger().notes() if n.quarantine is not None and n.quarantine.holds(now_s)]
    if json:
        print(msgspec.json.format(msgspec.json.encode(held), indent=2).decode())
        return
    if not held:
        note("no phone is in quarantine")
    for phone in held:
        if phone.quarantine is not None:
            until = time.strftime("%Y-%m-%d %H:%M", time.localtime(phone.quarantine.until_s))
            text = f"{phone.alias:<16} {phone.udid}  until {until}  {phone.quarantine.reason}"
            print("".join(char if char.isprintable() else " " for char in text))


@app.command()
def add(
    phone: Annotated[str, typer.Argument(help="Alias or UDID.")],
    reason: Annotated[str, typer.Option(help="Why, for whoever finds it.")],
    hours: Annotated[float, typer.Option(min=0.1, help="For how long.")] = 24.0,
    config: Annotated[Path | None, typer.Option(help="The configuration.")] = None,
) -> None:
    """Take a phone out of the lab.

    Example: fleet quarantine add bench-03 --reason "cracked port" --hours 48
    """
    from orchestrator.soak.ledger import SECONDS_PER_HOUR, Ledger, Quarantine

    udid, alias = _known(phone, config)
    now_s = time.time()
    until_s = now_s + hours * SECONDS_PER_HOUR
    Ledger().put_in(udid, alias, Quarantine(reason, now_s, until_s, automatic=False))


@app.command()
def remove(
    phone: Annotated[str, typer.Argument(help="Alias or UDID.")],
    config: Annotated[Path | None, typer.Option(help="The configuration.")] = None,
) -> None:
    """Give a phone back to the lab.

    Example: fleet quarantine remove bench-03
    """
    from orchestrator.soak.ledger import Ledger

    udid, alias = _known(phone, config)
    Ledger().take_out(udid, alias)


def _known(name: str, config: Path | None) -> tuple[str, str]:
    """Return UDID and alias of a phone of the ledger, the configuration, or on a cable."""
    import anyio

    from orchestrator.cli.attached import listed_phones
    from orchestrator.cli.soak_options import config_in_use
    from orchestrator.config.load import load_config
    from orchestrator.soak.ledger import Ledger

    file = config_in_use(config)
    known = {(note.udid, note.alias) for note in Ledger().notes()}
    known |= {(phone.udid, phone.alias) for phone in load_config(file).expect}
    matching = [pair for pair in known if name in pair]
    if not matching:
        rows, _ = anyio.run(listed_phones, file)
        matching = [(row.udid, row.alias) for row in rows if name in (row.udid, row.alias)]
    if len(matching) != 1:
        raise UsageError(
            f"no phone, or more than one, is known as {name!r}", remedy="Name it by its UDID"
        )
    return matching[0]
