"""What is sent to a host: its phones and nothing secret; what the host puts in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import structs

from orchestrator.cluster.orders import localised, orders_of
from orchestrator.config.load import load_config
from tests.cluster.test_join import ONE, planned

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.cluster.documents import Slice

SECRET = "https://hooks.example/T0KEN"


def orders(tmp_path: Path) -> dict[str, Slice]:
    config = tmp_path / "coordinator.yaml"
    config.write_text(
        f"notify: [{{webhook: '{SECRET}'}}]\nretry: {{lab: 3}}\n"
        'recovery: {hub_power_command: ["hub", "off"]}\n'
    )
    phones = [planned("A" * 25, host="mini-1"), planned("B" * 25, host="mini-2")]
    plan = structs.replace(ONE.plan, phones=phones)
    return orders_of(plan, load_config(config), 30.0, until_s=None)


def test_each_host_gets_its_own_phones(tmp_path: Path) -> None:
    made = orders(tmp_path)
    assert {
        host: [phone.udid[0] for phone in order.plan.phones] for host, order in made.items()
    } == {"mini-1": ["A"], "mini-2": ["B"]}


def test_no_address_to_notify_is_sent(tmp_path: Path) -> None:
    for order in orders(tmp_path).values():
        assert SECRET.encode() not in msgspec.json.encode(order)


def test_usbmuxds_and_hub_commands_are_the_hosts_own(tmp_path: Path) -> None:
    own = tmp_path / "host.yaml"
    own.write_text('sources: [{name: hub, usbmux: "127.0.0.1:27015"}]\n')
    order = localised(orders(tmp_path)["mini-1"], config=load_config(own))
    there = tmp_path / "there.yaml"
    there.write_text(order.config_yaml)
    config = load_config(there)
    assert [source.name for source in config.sources] == ["hub"]
    assert config.recovery == load_config(None).recovery
    assert config.retry.lab == 3
