"""What nodes an environment launches, and which quotas count them. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from trainfabric_cli.account.quotas import Quota, vcpu_quota
from trainfabric_plan.capacity import CapacityKind
from trainfabric_plan.environment import Environment


@dataclass(frozen=True, kw_only=True)
class Nodes:
    """Nodes of one type that are bought in one way."""

    instance_type: str
    count: int
    kind: CapacityKind


@dataclass(frozen=True, kw_only=True)
class QuotaNeed:
    """A quota, and the nodes that it counts; no quota where no source names one."""

    quota: Quota | None
    nodes: tuple[Nodes, ...]


def nodes_of(environment: Environment) -> list[Nodes]:
    """Every node that an environment can have up at once."""
    fleet = environment.fleet
    kind, on_demand = CapacityKind(fleet.workers), CapacityKind.ON_DEMAND
    if environment.orchestrator == "parallelcluster":
        head = Nodes(instance_type=environment.parallelcluster.head_node_instance_type, count=1, kind=on_demand)
        return [head, Nodes(instance_type=fleet.instance_type, count=fleet.nodes, kind=kind)]
    if fleet.coordinator == "control":
        coordinator = Nodes(instance_type=fleet.control_instance_type, count=1, kind=on_demand)
        return [coordinator, Nodes(instance_type=fleet.instance_type, count=fleet.nodes + fleet.spares, kind=kind)]
    first = kind if kind in (CapacityKind.CAPACITY_BLOCK, CapacityKind.RESERVATION) else on_demand
    workers = Nodes(instance_type=fleet.instance_type, count=fleet.nodes - 1 + fleet.spares, kind=kind)
    coordinator = Nodes(instance_type=fleet.instance_type, count=1, kind=first)
    return [coordinator, workers] if workers.count else [coordinator]


def quota_needs(environment: Environment) -> list[QuotaNeed]:
    """The quotas of vCPUs that an environment's launches count against.

    What runs in a reservation counts against the quota since the reservation was made (EC2 user guide, On-Demand
    Instance quotas). No source says that a Capacity Block counts against any.
    """
    counted: dict[Quota | None, list[Nodes]] = {}
    for nodes, quota in _counted(environment):
        counted.setdefault(quota, []).append(nodes)
    return [QuotaNeed(quota=quota, nodes=tuple(nodes)) for quota, nodes in counted.items()]


def _counted(environment: Environment) -> Iterator[tuple[Nodes, Quota | None]]:
    for nodes in nodes_of(environment):
        if nodes.kind in (CapacityKind.ON_DEMAND, CapacityKind.SPOT):
            yield nodes, vcpu_quota(nodes.instance_type, spot=nodes.kind is CapacityKind.SPOT)
