"""A configuration as its rules look at it: queues, compute resources, login pools and storage with where they stand.

Whatever is missing, unknown until a deploy, or of a wrong shape is `None` here or left out: `shape` speaks of that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from trainfabric_plan.catalog import InstanceType, find_instance_type
from trainfabric_plan.parallelcluster.known import is_settled
from trainfabric_plan.parallelcluster.numbers import as_flag, as_number

ON_DEMAND, SPOT, BLOCK = "ONDEMAND", "SPOT", "CAPACITY_BLOCK"
MOST_NODES_BY_DEFAULT = 10
"""`MaxCount` of a compute resource that names none (schema of aws-parallelcluster 3.16.1)."""


@dataclass(frozen=True)
class Part:
    """A section of the configuration.

    Attributes:
        at: Its path, entries of lists by their names.
        raw: What stands there.
    """

    at: str
    raw: Mapping[str, Any]

    def path(self, *keys: str) -> str:
        """Path of a key below."""
        return ".".join(part for part in (self.at, *keys) if part)

    def get(self, *keys: str) -> Any:
        """The settled value of a key below, or `None`."""
        value: Any = self.raw
        for key in keys:
            value = value.get(key) if isinstance(value, Mapping) else None
        return value if value is not None and is_settled(value) else None

    def text(self, *keys: str) -> str | None:
        """The text of a key below."""
        value = self.get(*keys)
        return value if isinstance(value, str) else None

    def whole(self, *keys: str) -> int | None:
        """The whole number of a key below."""
        number = as_number(self.get(*keys))
        return int(number) if number is not None and number == int(number) else None

    def flag(self, *keys: str) -> bool | None:
        """The truth of a key below."""
        value = self.get(*keys)
        return None if value is None else as_flag(value)

    def has(self, *keys: str) -> bool:
        """Whether a key below has a value, settled or not."""
        *parents, last = keys
        section = self.get(*parents) if parents else self.raw
        return isinstance(section, Mapping) and section.get(last) is not None

    def texts(self, *keys: str) -> tuple[str, ...]:
        """The settled texts of a list below."""
        value = self.get(*keys)
        found = value if isinstance(value, list) else ()
        return tuple(one for one in found if isinstance(one, str) and is_settled(one))

    def count(self, *keys: str) -> int:
        """How many entries a list below has, settled or not."""
        value = self.get(*keys)
        return len(value) if isinstance(value, list) else 0

    def section(self, *keys: str) -> Part:
        """A section below, empty where there is none."""
        value = self.get(*keys)
        return Part(self.path(*keys), value if isinstance(value, Mapping) else {})

    def parts(self, *keys: str) -> Iterator[Part]:
        """The sections of a list below."""
        value = self.get(*keys)
        for number, one in enumerate(value if isinstance(value, list) else ()):
            if isinstance(one, Mapping) and is_settled(one):
                name = one.get("Name")
                label = name if isinstance(name, str) and is_settled(name) else number
                yield Part(f"{self.path(*keys)}[{label}]", one)


@dataclass(frozen=True)
class Resource(Part):
    """A compute resource: equal nodes of a queue."""

    queue: Queue

    @property
    def instance_types(self) -> tuple[str, ...]:
        """Names of its types; none where they are settled later."""
        one = self.text("InstanceType")
        several = tuple(name for part in self.parts("Instances") if (name := part.text("InstanceType")))
        return (one,) if one else several

    @property
    def rows(self) -> tuple[InstanceType, ...]:
        """The catalog's rows of its types, those that it knows."""
        return tuple(row for name in self.instance_types if (row := find_instance_type(name)))

    @property
    def least(self) -> int:
        """Nodes that are always up."""
        return self.whole("MinCount") or 0

    @property
    def most(self) -> int | None:
        """Most nodes; `None` where that is settled later."""
        return self.whole("MaxCount") if self.has("MaxCount") else MOST_NODES_BY_DEFAULT

    @property
    def has_efa(self) -> bool:
        """Whether EFA is on."""
        return self.flag("Efa", "Enabled") is True

    @property
    def placement(self) -> Part:
        """The placement group that holds for it: its own section, or the queue's."""
        own = self.section("Networking", "PlacementGroup")
        return own if own.raw else self.queue.section("Networking", "PlacementGroup")

    @property
    def reservation(self) -> Part:
        """The reservation that holds for it: its own section, or the queue's."""
        own = self.section("CapacityReservationTarget")
        return own if own.raw else self.queue.section("CapacityReservationTarget")


@dataclass(frozen=True)
class Queue(Part):
    """A queue."""

    @property
    def name(self) -> str | None:
        """Its name."""
        return self.text("Name")

    @property
    def capacity(self) -> str | None:
        """How its nodes are bought; `None` where that is settled later."""
        return self.text("CapacityType") if self.has("CapacityType") else ON_DEMAND

    @cached_property
    def resources(self) -> tuple[Resource, ...]:
        """Its compute resources."""
        return tuple(Resource(part.at, part.raw, self) for part in self.parts("ComputeResources"))


@dataclass(frozen=True)
class Cluster(Part):
    """A whole configuration."""

    @cached_property
    def queues(self) -> tuple[Queue, ...]:
        """Its queues."""
        return tuple(Queue(part.at, part.raw) for part in self.parts("Scheduling", "SlurmQueues"))

    @property
    def resources(self) -> tuple[Resource, ...]:
        """The compute resources of all queues."""
        return tuple(resource for queue in self.queues for resource in queue.resources)

    @property
    def pools(self) -> tuple[Part, ...]:
        """Its pools of login nodes."""
        return tuple(self.parts("LoginNodes", "Pools"))

    @property
    def storage(self) -> tuple[Part, ...]:
        """Its shared storage."""
        return tuple(self.parts("SharedStorage"))

    @property
    def head(self) -> Part:
        """Its head node."""
        return self.section("HeadNode")

    @property
    def slurm(self) -> Part:
        """Settings of Slurm."""
        return self.section("Scheduling", "SlurmSettings")


def cluster_of(configuration: Mapping[str, Any]) -> Cluster:
    """The view of a configuration."""
    return Cluster("", configuration)
