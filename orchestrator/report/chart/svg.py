"""Matplotlib's SVG made fit for a page: small, themed by classes, told in words.

Colours stay as plain attributes, which any style sheet rule overrides and every viewer obeys, and
get a class each. Names are made unique, because a page holds many drawings.
"""

from __future__ import annotations

import re
from typing import Final
from xml.etree import ElementTree as ET

from orchestrator.report.chart.palette import CLASSES
from orchestrator.report.wording import clean

_SVG: Final = "{http://www.w3.org/2000/svg}"
_HREF: Final = "{http://www.w3.org/1999/xlink}href"
_NUMBER: Final = re.compile(r"-?\d+\.\d+")
_SPACED: Final = re.compile(r"\s*([MLCQz])\s*")  # a command of a path needs no space
_REFERENCE: Final = re.compile(r"#([\w.-]+)")
_DROPPED: Final = frozenset({"metadata", "style"})
_FONT: Final = "system-ui, sans-serif"


def inlined(drawing: bytes, *, name: str, title: str, description: str) -> str:
    """Return a drawing as an `<svg>` element of a page.

    Args:
        drawing: An SVG document of matplotlib.
        name: Unique on the page, letters, digits and hyphens.
        title: Short name, for a screen reader and as a tooltip.
        description: What is seen, in words.
    """
    root = ET.fromstring(drawing)  # noqa: S314 - our own drawing, no text of a phone in it
    for element in root.iter():
        element.tag = element.tag.removeprefix(_SVG)
    _drop(root)
    kept = {match for element in root.iter() for match in _references(element)}
    for element in root.iter():
        _rename(element, name, kept)
        _restyle(element)
        _round(element)
    root.attrib = {
        "viewBox": root.attrib["viewBox"],
        "role": "img",
        "aria-labelledby": f"{name}-title {name}-text",
    }
    _label(root, "desc", f"{name}-text", description)
    _label(root, "title", f"{name}-title", title)
    return ET.tostring(root, encoding="unicode")


def _drop(element: ET.Element) -> None:
    """Leave out what a page does not need, empty groups and line breaks included."""
    for child in list(element):
        _drop(child)
        empty = child.tag in ("g", "defs") and not len(child)
        if child.tag in _DROPPED or empty:
            element.remove(child)
    if element.tag != "text":
        element.text = None
    element.tail = None


def _references(element: ET.Element) -> list[str]:
    texts = (element.get(_HREF, ""), element.get("clip-path", ""))
    return [name for text in texts for name in _REFERENCE.findall(text)]


def _rename(element: ET.Element, name: str, kept: set[str]) -> None:
    own = element.attrib.pop("id", None)
    if own in kept:
        element.set("id", f"{name}-{own}")
    target = element.attrib.pop(_HREF, None)
    if target is not None:
        element.set("href", target.replace("#", f"#{name}-"))
    clip = element.get("clip-path")
    if clip is not None:
        element.set("clip-path", clip.replace("#", f"#{name}-"))


def _restyle(element: ET.Element) -> None:
    """Turn a style into attributes and classes: viewers that block inline styles obey those."""
    style = element.attrib.pop("style", "")
    pairs = (part.split(":", 1) for part in style.split(";") if ":" in part)
    classes = []
    for key, value in ((key.strip(), value.strip()) for key, value in pairs):
        element.set(key, _FONT if key == "font-family" else value.removesuffix("px"))
        if key in ("fill", "stroke") and value in CLASSES:
            classes.append(f"{key[0]}-{CLASSES[value]}")
    if classes:
        element.set("class", " ".join(sorted(classes)))


def _round(element: ET.Element) -> None:
    """Keep a tenth of a unit: nobody sees more, and it is most of the size."""
    for key in ("d", "x", "y", "width", "height"):
        value = element.get(key)
        if value is not None:
            element.set(key, _SPACED.sub(r"\1", _NUMBER.sub(_tenth, value)))
    if element.get("transform", "").startswith("rotate(-0"):
        del element.attrib["transform"]


def _tenth(match: re.Match[str]) -> str:
    return f"{float(match[0]):.1f}".removesuffix(".0")


def _label(root: ET.Element, tag: str, identity: str, text: str) -> None:
    label = ET.Element(tag, {"id": identity})
    label.text = clean(text)
    root.insert(0, label)
