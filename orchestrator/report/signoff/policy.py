"""The policy of a release: what must have been soaked, and what is waived."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from orchestrator.config.load import load_config, validate
from orchestrator.config.position import PlacedDocument, parse_yaml
from orchestrator.domain.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.config.model import ReleaseBlock

# What a release needs of every phone whatever a policy says: all of it holds for any model.
FLOOR: Final = (
    "budget.never-exceeded",
    "budget.matches-device",
    "trim.on-schedule",
    "trim.keeps-tail",
    "trim.notice",
    "evict.on-warning",
    "evict.notice",
    "memory.peak",
    "jetsam.none",
    "crash.none",
    "soak.completed",
    "telemetry.complete",
)
_KEYS: Final = frozenset({"require", "waivers"})


@dataclass(frozen=True, slots=True)
class Policy:
    """What a sign-off demands, and the text it was read from."""

    release: ReleaseBlock
    text: bytes


def read_policy(path: Path) -> Policy:
    """Read a policy file: the keys of `release:` at the top, or a whole `fleet.yaml`.

    Raises:
        ConfigError: With the position of what breaks a rule.
        UsageError: If the policy requires nothing: a sign-off of nothing proves nothing.
    """
    try:
        text = path.read_bytes()
        document = parse_yaml(text.decode(), str(path))
    except OSError as error:
        raise ConfigError(str(path), f"cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(str(path), "is not UTF-8 text") from error
    alone = isinstance(document.value, dict) and not _KEYS.isdisjoint(document.value)
    release = validate(_below_release(document)).release if alone else load_config(path).release
    if not release.require:
        raise UsageError(f"{path} requires nothing", remedy="List models under `require:`")
    return Policy(release, text)


def _below_release(document: PlacedDocument) -> PlacedDocument:
    places = {("release", *path): place for path, place in document.places.items()}
    return PlacedDocument(document.file, {"release": document.value}, places)
