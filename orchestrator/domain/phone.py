"""What a phone *is*: passive data, made by discovery."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.domain.iphone import by_product_type


@dataclass(frozen=True, slots=True)
class Phone:
    """Identity of one attached phone. Keyed by UDID and alias, never by model."""

    udid: str
    alias: str  # from `expect:`, else the phone's own name made unique
    name: str  # DeviceName, hostile text
    product_type: str
    os: str
    build: str
    source: str  # name of the usbmux source it was found on
    virtual: bool
    tags: tuple[str, ...] = ()
    host: str = ""  # of the cluster it is attached to; empty on a single host

    @property
    def model(self) -> str:
        """Marketing name, or the ProductType where the catalog has none."""
        known = by_product_type(self.product_type)
        return known.model if known else self.product_type

    @property
    def ram_gb(self) -> int | None:
        """Marketed RAM in GB, None where the catalog does not know the model."""
        known = by_product_type(self.product_type)
        return known.ram_gb if known else None
