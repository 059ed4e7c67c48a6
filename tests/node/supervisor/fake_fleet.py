"""The nodes of a run, for a supervisor that gives them back."""

from __future__ import annotations


class FakeFleet:
    """Keeps what was asked of it."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def release(self, but: str | None = None) -> None:
        self.asked.append(f"release all but {but}")

    def give_back(self, instance_id: str) -> bool:
        self.asked.append(f"give {instance_id} back")
        return True

    def replace(self, instance_id: str) -> bool:
        self.asked.append(f"replace {instance_id}")
        return True
