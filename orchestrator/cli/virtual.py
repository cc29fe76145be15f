"""`fleet virtual serve`."""

from __future__ import annotations

from typing import Annotated

import typer

from orchestrator.domain.errors import UsageError

app = typer.Typer(rich_markup_mode=None, no_args_is_help=True)


@app.callback()
def virtual() -> None:
    """Virtual iPhones that speak the real protocols on loopback."""


@app.command()
def serve(
    phones: Annotated[
        int | None, typer.Option(min=1, max=500, help="How many; models repeat in a round.")
    ] = None,
    models: Annotated[
        str | None, typer.Option(help='Marketing names: "iPhone 14,iPhone 16".')
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="usbmux port; 0 takes any.")] = 0,
    tunneld_port: Annotated[
        int, typer.Option("--tunneld-port", min=0, max=65535, help="0 takes any.")
    ] = 0,
    json: Annotated[bool, typer.Option("--json", help="First line on stdout is JSON.")] = False,
) -> None:
    """Serve virtual iPhones on 127.0.0.1 until SIGTERM or Ctrl-C.

    Clients find them with USBMUXD_SOCKET_ADDRESS=127.0.0.1:PORT.
    Example: fleet virtual serve --phones 4 --json
    """
    import asyncio

    from orchestrator.cli.serving import serve_until_signal
    from orchestrator.virtual.serve import ServeOptions, default_phones, phones_of

    names = [name.strip() for name in (models or "").split(",") if name.strip()]
    try:
        chosen = phones_of(names, phones) if names else default_phones(phones)
        options = ServeOptions(phones=chosen, port=port, tunneld_port=tunneld_port)
        asyncio.run(serve_until_signal(options, json=json))
    except (ValueError, OSError) as error:
        raise UsageError(f"fleet virtual serve: {error}") from error
