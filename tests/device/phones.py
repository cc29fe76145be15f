"""Phones to select among."""

from __future__ import annotations

from zlib import crc32

from orchestrator.domain.phone import Phone


def phone(
    alias: str = "bench-01",
    product_type: str = "iPhone16,1",
    os: str = "18.6",
    *,
    udid: str | None = None,
    name: str | None = None,
    source: str = "usb",
    virtual: bool = False,
    tags: tuple[str, ...] = (),
) -> Phone:
    """Return a phone, by default an iPhone 15 Pro."""
    return Phone(
        udid=udid or f"00008130-{crc32(alias.encode()):016X}",
        alias=alias,
        name=name if name is not None else alias,
        product_type=product_type,
        os=os,
        build="22G86",
        source=source,
        virtual=virtual,
        tags=tags,
    )
