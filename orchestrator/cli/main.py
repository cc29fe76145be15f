"""Entry point of `fleet`: lazy commands, one place for errors and exit codes.

`fleet --help` imports no command: a person waits for it. A test holds which modules it loads.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import TYPE_CHECKING, Annotated, Final, TextIO

import typer
from typer.core import TyperGroup

import orchestrator
from orchestrator.domain.errors import FleetError, HostFileError, told
from orchestrator.domain.outcome import ExitCode

if TYPE_CHECKING:
    from typer._click import Command, Context, HelpFormatter
    from typer.core import TyperOption

COMMANDS: Final = {
    "soak": "Soak phones and state per phone whether the contract held.",
    "build": "Build and sign the app for iPhones; say what was signed, or the one cause why not.",
    "plan": "Say what a soak would do, without touching a phone.",
    "conform": "Run an app that was given briefly, and say which checks it can support.",
    "init": "Write a commented fleet.yaml from the phones that are attached.",
    "ci-template": "Print a nightly job for GitHub Actions, GitLab or Buildkite.",
    "doctor": "Say whether a soak could start now, and what to do if not.",
    "calibrate": "Measure what phones do at their memory limit, and store it.",
    "resume": "Go on with a run whose process died.",
    "retry": "Soak the phones of a run again that failed, or that the lab failed.",
    "status": "Show how far a run is.",
    "watch": "Look at a run until it ends.",
    "serve": "Show a run in a browser while it goes on, on this machine.",
    "stop": "Stop a run in order, report included.",
    "prune": "List or delete old runs; signed ones and baselines stay.",
    "quarantine": "Take phones out of the lab, and back: list, add, remove.",
    "who": "List the phones that runs hold.",
    "unlock": "Free a phone by ending the run that holds it.",
    "report": "Remake all reports of a run from its directory.",
    "crashlog": "Read diagnostic reports: `fleet crashlog parse PATH...`.",
    "explain": "Say what a check, a cause of death, an exit code or a scenario means.",
    "config": "Check `fleet.yaml`, or show what a run would use.",
    "schema": "Print the JSON Schema of `fleet.yaml`, for editors.",
    "devices": "List the phones that are attached.",
    "cluster": "Several hosts as one fleet: make certificates, run the scheduler.",
    "agent": "Offer this host's phones to a cluster.",
    "merge": "Join the runs of hosts that share nothing into one.",
    "contract": "Answer a vector file with the traces of the pipeline contract.",
    "history": "Show past runs: outcomes and numbers per phone, model or check.",
    "compare": "Compare runs like with like; exit 1 on a regression.",
    "baseline": "Name sets of runs that later ones are held against.",
    "signoff": "Sign off a release from the evidence of runs; make keys; verify bundles.",
    "redact": "Copy a run fit to send out: names, UDIDs, processes and tokens replaced.",
    "selftest": "Prove that the checks can fail: every deliberate defect on virtual phones.",
    "virtual": "Virtual iPhones: serve them, list them, let things go wrong with them.",
    "model": "Core ML packages: build, verify, inspect, lint, budget.",
}
HIDDEN: Final = frozenset({"slice"})  # called by an agent, not by people
EPILOG: Final = (
    "Exit codes: 0 held, 1 product failure, 2 usage or configuration, 3 no phone, "
    "4 inconclusive, 5 build or signing, 6 phone held by another run, 130/143 on a signal. "
    "`fleet explain CODE` says more."
)


class LightGroup(TyperGroup):
    """Keeps typer from loading pydantic, 15 MB and 60 ms, to convert an option nobody gave.

    typer converts every value but a bool: so `--help` is off, not absent, where it is not given.
    """

    def get_help_option(self, ctx: Context) -> TyperOption | None:  # noqa: D102 - of the base
        option = super().get_help_option(ctx)
        if option is not None:
            option.default = False
        return option


class LazyGroup(LightGroup):
    """Imports a command's module when the command is called."""

    def list_commands(self, ctx: Context) -> list[str]:  # noqa: D102 - of the base
        return list(COMMANDS)

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:  # noqa: D102
        if cmd_name not in COMMANDS and cmd_name not in HIDDEN:
            return None
        module = importlib.import_module(f"orchestrator.cli.{cmd_name.replace('-', '_')}")
        command = typer.main.get_command(module.app)
        command.name = cmd_name
        dress(command)
        return command

    def resolve_command(  # noqa: D102 - of the base
        self, ctx: Context, args: list[str]
    ) -> tuple[str | None, Command | None, list[str]]:
        # The base suggests from commands that are loaded; here none is.
        known = args and (args[0] in COMMANDS or args[0] in HIDDEN)
        if args and not known and not args[0].startswith("-"):
            import difflib

            near = difflib.get_close_matches(args[0], COMMANDS, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else " `fleet --help` lists them."
            ctx.fail(f"No such command {args[0]!r}.{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:  # noqa: D102
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def dress(command: Command) -> None:
    """Give a command and those below it the exit codes, and leave completion to `fleet` itself."""
    command.params = [param for param in command.params if param.name not in _COMPLETION]
    own_codes = "Exit codes:" in (command.help or "")  # a second, general list would contradict it
    command.epilog = command.epilog or ("`fleet explain CODE` says more." if own_codes else EPILOG)
    if command.help and not command.short_help:
        # Given so, a list of commands wraps a sentence; else it is cut off with dots.
        command.short_help = " ".join(command.help.split("\n\n")[0].split())
    for below in getattr(command, "commands", {}).values():
        dress(below)


# Commands whose run `fleet resume` goes on with, after an error of this computer's files.
_CARRY_OUT_RUNS: Final = frozenset({"soak", "resume", "retry"})
_COMPLETION: Final = ("install_completion", "show_completion")

app = typer.Typer(
    name="fleet",
    cls=LazyGroup,
    # The options for completion would load pydantic too: they are there where no command is.
    add_completion=not sys.argv[1:] or sys.argv[1].startswith("-"),
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"fleet {orchestrator.__version__}")
        raise typer.Exit


@app.callback()
def fleet(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """A soak lab for on-device LLMs on iPhones.

    Examples: fleet soak --devices all --virtual; fleet explain trim.on-schedule; fleet
    --install-completion
    """


def _run_and_flush() -> None:
    """Run the command, and find out here whether its output could be written.

    Raises:
        HostFileError: If it could not, as where standard output is a file on a full disk.
    """
    try:
        app()
    finally:
        output: TextIO | None = sys.stdout  # None: closed by whoever started this, as by `>&-`
        try:
            if output is not None:
                output.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            # What is left in the buffer would fail again at the exit, as a traceback.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise HostFileError(
                f"the output cannot be written: {error.strerror}",
                remedy="Send it to a file on a disk with room, or to a terminal",
            ) from error


def _occupy_standard_streams() -> None:
    """Put nothing in the place of standard streams that are closed.

    Else the next file that is opened, a run's record perhaps, becomes the output of every child.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number: this one


def main() -> None:
    """Run `fleet`; never shows a traceback."""
    _occupy_standard_streams()
    try:
        _run_and_flush()
    except FleetError as error:
        print(one_line(str(error)), file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(ExitCode.SIGINT)
    except BrokenPipeError:
        # The reader of our output left; nothing is wrong with the run.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(ExitCode.INCONCLUSIVE)
    except Exception as error:  # noqa: BLE001 - a traceback shown to a user is a defect
        known = told(error, of_run=not _CARRY_OUT_RUNS.isdisjoint(sys.argv[1:2]))
        if known is not None:
            print(one_line(str(known)), file=sys.stderr)
            sys.exit(known.exit_code)
        print(
            one_line(
                f"internal error: {type(error).__name__}: {error}; details are in {_saved_trace()}"
            ),
            file=sys.stderr,
        )
        sys.exit(ExitCode.INCONCLUSIVE)


def one_line(text: str) -> str:
    """Return a text without line breaks and control characters, which a phone may have sent."""
    return "".join(char if char.isprintable() else " " for char in text)


def _saved_trace() -> str:
    import tempfile
    import traceback

    with tempfile.NamedTemporaryFile(
        "w", prefix="fleet-error-", suffix=".txt", delete=False, encoding="utf-8"
    ) as file:
        traceback.print_exc(file=file)
    return file.name


if __name__ == "__main__":
    main()
