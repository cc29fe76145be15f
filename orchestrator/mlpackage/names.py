"""Which feature of a package plays which role: the names that `model.names` of fleet.yaml holds."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from orchestrator.mlpackage.graph import Model

# Role: what its name looks like in public packages, case and underscores left out. The first that
# matches wins: `valuecache` must not be taken for a mask, `logitindex` not for logits.
_LOOKS: Final = (
    ("logit_index", re.compile(r"logitindex|lastindex")),
    ("position_ids", re.compile(r"positionids|cacheposition|^positions$")),
    ("current_position", re.compile(r"currentpos|cachelength|^pos$")),
    ("causal_mask", re.compile(r"mask")),
    ("input_ids", re.compile(r"inputid|tokenid|^tokens?$|^ids$")),
    ("hidden_states", re.compile(r"hidden|inputembed")),
    ("logits", re.compile(r"logit")),
    ("key_cache", re.compile(r"key|^k(cache|$)|^ks$")),
    ("value_cache", re.compile(r"value|^v(cache|$)|^vs$")),
    ("kv_cache", re.compile(r"kv|cache|state")),
)


def roles(models: Iterable[Model]) -> Mapping[str, tuple[str, ...]]:
    """Return role to feature names over the packages of one model, in the order they come.

    A feature whose name looks like nothing known has no role: the person names it.
    """
    found: dict[str, dict[str, None]] = {}  # ordered, without repeats
    for model in models:
        for function in model.functions.values():
            for feature in (*function.inputs, *function.outputs, *function.states):
                role = _role(feature.name)
                if role:
                    found.setdefault(role, {})[feature.name] = None
    return {role: tuple(found[role]) for role, _ in _LOOKS if role in found}


def _role(name: str) -> str | None:
    plain = re.sub(r"[^a-z0-9]", "", name.lower())
    return next((role for role, look in _LOOKS if look.search(plain)), None)
