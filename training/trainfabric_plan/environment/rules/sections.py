"""What a rule over several values of an environment gets and yields."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from trainfabric_plan.catalog import InstanceType, find_instance_type
from trainfabric_plan.catalog.instances import HOW_TO_ADD, nearest_instance_types
from trainfabric_plan.environment.types import Fleet, Network, ParallelCluster, Storage, Training
from trainfabric_plan.errors import NotFound
from trainfabric_plan.policy import FaultTolerance
from trainfabric_plan.recipes import Recipe, recipe

Broken = dict[str, Any]
"""What a `Mistake` says, but for the file that it is in."""


@dataclass(frozen=True, kw_only=True)
class Sections:
    """The valid sections of an environment; `None` where a section is broken in itself."""

    region: str | None
    availability_zone: str | None
    network: Network | None
    storage: Storage | None
    fleet: Fleet | None
    training: Training | None
    orchestrator: str | None
    parallelcluster: ParallelCluster | None
    fault_tolerance: FaultTolerance | None
    tags: Mapping[str, str] | None
    instance_type: str | None
    """As it stands in the file, whatever else is wrong with the fleet."""

    @property
    def instance(self) -> InstanceType | None:
        """The catalog's row of the instance type, if the catalog knows it."""
        return find_instance_type(self.instance_type) if self.instance_type else None

    @property
    def recipe(self) -> Recipe | None:
        """The recipe, if there is one of that name."""
        try:
            return recipe(self.training.recipe) if self.training and self.training.recipe else None
        except NotFound:
            return None


Rule = Callable[[Sections], Iterator[Broken]]
"""Yields what is wrong with the sections that it looks at."""


def not_in_catalog(name: str, instance_type: str) -> Broken:
    """A name that the catalog lacks, with its nearest ones."""
    near = nearest_instance_types(instance_type)
    remedy = f"did you mean {' or '.join(near)}? " if near else ""
    return {
        "name": name,
        "rule": "a type of the catalog",
        "got": instance_type,
        "remedy": f"{remedy}{HOW_TO_ADD} says how to add one",
    }
