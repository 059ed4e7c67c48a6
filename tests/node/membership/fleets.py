"""A fleet that notes what it is asked, and fails as often as a test says."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from trainfabric_node.jobs.fleet import Member
from trainfabric_plan.contract import Role
from trainfabric_plan.errors import Unreachable


class FakeFleet:
    def __init__(self, *there: str) -> None:
        self.asked: list[Any] = []
        self.failures = 0
        self.there = list(there)
        self.looks = 0

    def members(self) -> list[Member]:
        self.looks += 1
        return [
            Member(
                instance_id=name,
                group="workers",
                role=Role.WORKER,
                life_cycle_state="InService",
                launch_template_version=None,
                protected=False,
            )
            for name in self.there
        ]

    def protect(self, instance_ids: Iterable[str]) -> None:
        self._ask(("protect", *instance_ids))

    def replace(self, instance_id: str) -> bool:
        self._ask(("replace", instance_id))
        return True

    def give_back(self, instance_id: str) -> bool:
        self._ask(("give_back", instance_id))
        return True

    def restore(self, nodes: int, spares: int = 0) -> None:
        self._ask(("restore", nodes, spares))

    def release(self) -> None:
        self._ask(("release",))

    def _ask(self, what: tuple[Any, ...]) -> None:
        if self.failures:
            self.failures -= 1
            raise Unreachable("autoscaling does not answer")
        self.asked.append(what)
