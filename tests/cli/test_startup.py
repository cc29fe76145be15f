"""What a person waits for: `fleet --help` loads no command and no heavy library."""

import subprocess
import sys

import pytest

HEAVY = {
    "anyio",
    "cryptography",
    "jinja2",
    "junitparser",
    "msgspec",
    "numpy",
    "pydantic",
    "pymobiledevice3",
    "rich",
    "scipy",
    "yaml",
}
OURS = {
    "orchestrator",
    "orchestrator.cli",
    "orchestrator.cli.main",
    "orchestrator.domain",
    "orchestrator.domain.errors",
    "orchestrator.domain.outcome",
}


def loaded_modules(argument: str) -> set[str]:
    code = (
        "import sys\n"
        f"sys.argv = ['fleet', {argument!r}]\n"
        "from orchestrator.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print('MODULES', *sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30
    )
    return set(done.stdout.rpartition("MODULES")[2].split())


@pytest.mark.parametrize("argument", ["--help", "--version"])
def test_help_and_version_load_nothing_heavy(argument: str) -> None:
    modules = loaded_modules(argument)
    assert {name for name in modules if name.partition(".")[0] in HEAVY} == set()
    assert {name for name in modules if name.startswith("orchestrator")} == OURS


# What the library's lockdown client loads; a list of phones is read without it.
HEAVY_OF_DISCOVERY = {
    "prompt_toolkit",
    "pymobiledevice3.dtx",
    "pymobiledevice3.lockdown",
    "requests",
}


def test_discovery_loads_no_client_of_sessions() -> None:
    code = "import sys, orchestrator.cli.attached; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    loaded = set(done.stdout.split())
    assert "pymobiledevice3.usbmux" in loaded
    assert loaded & HEAVY_OF_DISCOVERY == set()
