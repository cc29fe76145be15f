"""`fleet virtual serve`, `list`, `fault`, `log`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orchestrator.domain.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.virtual.serve import ServeOptions

app = typer.Typer(rich_markup_mode=None, no_args_is_help=True)

_CONTROL_HELP = "Control socket of the farm; needed where several run."
Control = Annotated[Path | None, typer.Option("--control", help=_CONTROL_HELP)]


@app.callback()
def virtual() -> None:
    """Virtual iPhones that speak the real protocols on loopback.

    Example: fleet virtual serve --phones 4
    """


@app.command()
def serve(
    phones: Annotated[
        int | None, typer.Option(min=1, max=500, help="How many; models repeat in a round.")
    ] = None,
    models: Annotated[
        str | None, typer.Option(help='Marketing names: "iPhone 14,iPhone 16".')
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="fleet.yaml whose block `virtual` says which, and faults.")
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="usbmux port; 0 takes any.")] = 0,
    tunneld_port: Annotated[
        int, typer.Option("--tunneld-port", min=0, max=65535, help="0 takes any.")
    ] = 0,
    seed: Annotated[int, typer.Option(help="Other UDIDs, other chance in faults.")] = 0,
    folder: Annotated[Path | None, typer.Option(help="Keep the phones' state here.")] = None,
    events: Annotated[Path | None, typer.Option(help="Append the event log to a file.")] = None,
    json: Annotated[bool, typer.Option("--json", help="First line on stdout is JSON.")] = False,
) -> None:
    """Serve virtual iPhones on 127.0.0.1 until SIGTERM or Ctrl-C.

    Clients find them with USBMUXD_SOCKET_ADDRESS=127.0.0.1:PORT.
    Example: fleet virtual serve --phones 4 --json
    """
    import asyncio
    from dataclasses import replace

    from orchestrator.cli.serving import serve_until_signal
    from orchestrator.virtual.serve import ServeOptions, default_phones, phones_of

    names = [name.strip() for name in (models or "").split(",") if name.strip()]
    try:
        chosen = phones_of(names, phones) if names else default_phones(phones)
        options = ServeOptions(phones=chosen)
        if config is not None:
            options = _configured(config, options, keep_phones=bool(names or phones))
        options = replace(
            options, port=port, tunneld_port=tunneld_port, seed=seed, folder=folder, events=events
        )
        asyncio.run(serve_until_signal(options, json=json))
    except (ValueError, OSError) as error:
        raise UsageError(f"fleet virtual serve: {error}") from error


@app.command(name="list")
def list_phones(
    control: Control = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object a phone.")] = False,
) -> None:
    """List the virtual phones that are served, with their state and their faults.

    Example: fleet virtual list
    """
    from json import dumps

    from orchestrator.virtual.client import ask, the_control

    for row in ask(control or the_control(), do="list")["phones"]:
        print(dumps(row) if json else _line(row))


@app.command()
def fault(
    phone: Annotated[
        str | None, typer.Argument(help="Name, UDID, several with commas, `all`.")
    ] = None,
    kind: Annotated[str | None, typer.Argument(help="Kind of fault, or `mend` to undo.")] = None,
    settings: Annotated[list[str] | None, typer.Argument(help="NAME=VALUE of the kind.")] = None,
    for_s: Annotated[float | None, typer.Option("--for", min=0, help="Undo after seconds.")] = None,
    control: Control = None,
) -> None:
    """Let something go wrong with a virtual phone; without arguments, list what can.

    Examples: fleet virtual fault vp-01 unplug --for 5
    fleet virtual fault vp-02 slam service=com.apple.afc at_byte=100
    fleet virtual fault all mend
    """
    from orchestrator.virtual.client import ask, the_control

    if phone is None or kind is None:
        _print_kinds()
        return
    place = control or the_control()
    if kind == "mend":
        only = settings[0] if settings else None
        print(f"{ask(place, do='mend', phone=phone, kind=only)['undone']} undone")
        return
    given = dict(_pair(text) for text in settings or [])
    ask(place, do="fault", phone=phone, kind=kind, settings=given, for_s=for_s)


@app.command()
def log(
    control: Control = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with new events.")] = False,
) -> None:
    """Print what happened to the virtual phones, one JSON object a line.

    Example: fleet virtual log
    """
    from json import dumps

    from orchestrator.virtual.client import read_log, the_control

    for event in read_log(control or the_control(), follow=follow):
        print(dumps(event), flush=True)


def _configured(path: Path, options: ServeOptions, *, keep_phones: bool) -> ServeOptions:
    """Return options with the phones, the scale and the faults of a configuration."""
    from dataclasses import replace

    from orchestrator.config.load import load_config
    from orchestrator.virtual.faults.engine import scripted

    block = load_config(path, ()).virtual
    phones = [(phone.model, phone.os) for phone in block.phones]
    return replace(
        options,
        phones=options.phones if keep_phones else phones,
        memory_scale=block.memory_scale,
        faults=tuple(scripted(each.model_dump()) for each in block.faults),
        limits_mib={}
        if keep_phones
        else {at: each.limit_mib for at, each in enumerate(block.phones) if each.limit_mib},
    )


def _line(row: dict[str, Any]) -> str:
    state = "attached" if row["attached"] else "unplugged"
    marks: Sequence[str] = [*(["locked"] if row["locked"] else []), *row["faults"]]
    return (
        f"{row['name']:<8} {row['model']:<18} iOS {row['os']:<6} {state:<9}"
        f" {row['battery_percent']:>3} % {row['thermal']:<8} {', '.join(row['apps']) or '-':<16}"
        f" {', '.join(marks)}"
    ).rstrip()


def _print_kinds() -> None:
    from orchestrator.virtual.faults.vocabulary import describe_kinds

    for signature, text in describe_kinds():
        print(f"{signature:<44} {text}")


def _pair(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign:
        raise UsageError(f"{text!r} is not NAME=VALUE")
    return name, value
