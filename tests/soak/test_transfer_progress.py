"""Few remarks about a transfer, none about a short one."""

from __future__ import annotations

from dataclasses import dataclass, field

from orchestrator.soak.transfer_progress import TransferProgress


@dataclass
class Told:
    now_s: float = 0.0
    percents: list[object] = field(default_factory=list)

    def remark(self, kind: str, **facts: str | float | bool | None) -> None:
        assert (kind, facts["what"]) == ("progress", "install")
        self.percents.append(facts["percent"])

    def progress(self) -> TransferProgress:
        return TransferProgress("install", self.remark, lambda: self.now_s)


def test_a_short_transfer_is_not_worth_a_remark() -> None:
    told = Told()
    progress = told.progress()
    for percent in range(101):
        progress.on_percent(percent)
    assert told.percents == []


def test_a_long_one_is_told_at_most_every_second_and_every_step() -> None:
    told = Told()
    progress = told.progress()
    for tenth in range(1000):
        told.now_s = tenth / 10
        progress.on_percent(tenth / 10)
    assert told.percents == [float(percent) for percent in range(5, 100, 5)]


def test_the_phones_stages_are_the_second_half() -> None:
    told = Told()
    progress = told.progress()
    for stage, percent in (("Uploading", 50.0), ("Uploading", 100.0), ("Copying", 60.0)):
        told.now_s += 2
        progress.on_install(stage, percent)
    assert told.percents == [25.0, 50.0, 80.0]
