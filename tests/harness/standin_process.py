"""The stand-in app in a child process, and a plain client of its control socket."""

from __future__ import annotations

import json
import os
import selectors
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from orchestrator.harness.models import ModelPackage, WitnessShape, witness_package

TOKEN = "secret"
NONCE = 0xDEADBEEF
LIMIT_S = 45.0
SCALE = 32
PHONE_LIMIT_BYTES = 2867 * 1024**2
REPO_ROOT = Path(__file__).resolve().parents[2]

Record = dict[str, Any]


def scenario(**changes: object) -> Record:
    """A small soak: budget 64, prompts of 20 to 30 ids, 400 tokens, as fast as it goes."""
    base: Record = {
        "name": "small",
        "seed": 7,
        "duration_s": 20.0,
        "speed": {"decode_tokens_per_s": 4000.0, "prefill_tokens_per_s": 100000.0},
        "policy": {
            "budget_tokens": {"6gb": 64, "8gb": 128, "12gb": 128},
            "scenario_budget_tokens": None,
            "kv_ceiling_tokens": None,
            "pin": "bos",
            "long_prompt": "refuse",
            "headroom_percent": 20,
        },
        "prompts": {"min_ids": 20, "max_ids": 30, "turn_limit": 40, "turns_per_conversation": 4},
        "end_every": 1000,
        "sample_period_ms": 100,
        "ballast": [],
        "warnings": [],
        "stop_after_tokens": 400,
    }
    return {**base, **changes}


def slow() -> dict[str, float]:
    return {"decode_tokens_per_s": 200.0, "prefill_tokens_per_s": 20000.0}


def model_json(package: ModelPackage) -> bytes:
    """The bytes of a witness' `model.json`."""
    content = package.files["model.json"]
    assert isinstance(content, bytes)
    return content


def one_long_turn() -> Record:
    """Changes to `scenario`: a single turn at `slow` speed, without trims, end tokens or an end.

    Whatever the test does then, however late on a busy machine, it does while a token is decoded.
    """
    policy = scenario()["policy"]
    return {
        "speed": slow(),
        "duration_s": 3600.0,
        "stop_after_tokens": None,
        "end_every": 0,
        "policy": {**policy, "budget_tokens": {"6gb": 4096, "8gb": 4096, "12gb": 4096}},
        "prompts": {**scenario()["prompts"], "turn_limit": 1_000_000},
    }


class Client:
    """Lines of one connection, with a deadline on every wait."""

    def __init__(self, socket_path: Path) -> None:
        self.connection = socket.socket(socket.AF_UNIX)
        self.connection.settimeout(LIMIT_S)
        self.connection.connect(str(socket_path))
        self._lines = self.connection.makefile("rb")

    def send(self, line: bytes) -> None:
        self.connection.sendall(line)

    def line(self) -> bytes:
        """The next line, empty when the app has closed the connection."""
        try:
            return self._lines.readline()
        except ConnectionError:
            return b""

    def ask(self, command: str, **fields: object) -> Record:
        """Send a command and return its reply; records on the way are passed over."""
        self.send(json.dumps({"id": 9, "command": command, **fields}).encode() + b"\n")
        while line := self.line():
            message: Record = json.loads(line)
            if "reply" in message:
                return message
        raise AssertionError("the app closed the connection")

    def hello(self) -> Record:
        return self.ask("hello", token=TOKEN)

    def rest(self) -> list[bytes]:
        """All further lines, until the app closes the connection."""
        return list(iter(self.line, b""))

    def close(self) -> None:
        self._lines.close()
        self.connection.close()


class StandIn:
    """One launch of the stand-in app on a phone of the given environment."""

    program: tuple[str, ...] = (sys.executable, "-m", "orchestrator.harness.standin")

    def __init__(
        self, container: Path, env: dict[str, str], shape: WitnessShape | None = None
    ) -> None:
        self._shape = shape or WitnessShape(64 * 1024**2, capacity=256)
        self.container = container
        self.socket_path = container / "app.sock"
        self.clients: list[Client] = []
        self.packages = [self._push(q) for q in ("int4", "int8")]
        self.process = subprocess.Popen(
            self.program,
            env={**self._phone(), **env},
            cwd=container,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._await_listening()

    def _phone(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(REPO_ROOT),
            "FLEET_TOKEN": TOKEN,
            "FLEET_SOCKET": str(self.socket_path),
            "FLEET_MEMORY_SCALE": str(SCALE),
            "FLEET_MEMORY_LIMIT_BYTES": str(PHONE_LIMIT_BYTES),
            "FLEET_PHYSICAL_MEMORY_BYTES": "5917753344",
            "FLEET_PRODUCT_TYPE": "iPhone14,7",
            "FLEET_OS": "18.5",
            "FLEET_BUILD": "22F76",
            "FLEET_PARENT_PID": str(os.getpid()),
            "HOME": str(self.container),
        }

    def _push(self, quantization: str) -> dict[str, str]:
        package = witness_package(quantization, self._shape)
        folder = self.container / package.folder
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "model.json").write_bytes(model_json(package))
        return package.listed()

    def _await_listening(self) -> None:
        assert self.process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            selector.select(LIMIT_S)
        self.first_line = self.process.stdout.readline()

    def connect(self) -> Client:
        self.clients.append(Client(self.socket_path))
        return self.clients[-1]

    def start(self, client: Client, **changes: object) -> Record:
        return client.ask(
            "start",
            run_id="run",
            nonce=f"{NONCE:016x}",
            scenario=scenario(**changes),
            packages=self.packages,
        )

    def condition(self, **event: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(event).encode() + b"\n")
        self.process.stdin.flush()

    def soak(self, **changes: object) -> list[Record]:
        """Run a whole soak and return its records as they came over the connection."""
        client = self.connect()
        assert client.hello()["ok"]
        assert self.start(client, **changes)["ok"]
        return [json.loads(line) for line in client.rest()]

    def status(self) -> int:
        return self.process.wait(LIMIT_S)

    @property
    def journal(self) -> bytes:
        (path,) = (self.container / "Documents" / "fleet").iterdir()
        return path.read_bytes()

    def await_journal(self, mark: bytes) -> None:
        """Return when the journal holds `mark`."""
        end_s = time.monotonic() + LIMIT_S
        while mark not in self.journal:
            assert time.monotonic() < end_s, f"{mark!r} never came"
            time.sleep(0.01)

    def kill(self) -> None:
        for client in self.clients:
            client.close()
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()
