"""Rules about how the nodes are bought and where they stand, as far as several values decide it."""

from __future__ import annotations

from collections.abc import Iterator

from trainfabric_plan.capacity import (
    CAPACITY_RULES,
    MOST_NODES_OF_A_BLOCK,
    RESOURCE_GROUP,
    CapacityKind,
    CapacityRule,
    PlacementRule,
    are_too_many_for_a_block,
    names_reservation,
    reservation_rule,
)
from trainfabric_plan.catalog import find_instance_type
from trainfabric_plan.catalog.types import NO_SOURCE, REFRESH
from trainfabric_plan.deployed import MOST_GROUPS
from trainfabric_plan.environment.rules.sections import Broken, Rule, Sections
from trainfabric_plan.partitions import GROUP_OF_REGION, is_of_region, region_rule


def _kind(given: Sections) -> tuple[CapacityKind, CapacityRule] | None:
    if not given.fleet:
        return None
    kind = CapacityKind(given.fleet.workers)
    return kind, CAPACITY_RULES[kind]


def _spot_price(given: Sections) -> Iterator[Broken]:
    if given.fleet and given.fleet.workers != "spot" and given.fleet.max_spot_price is not None:
        yield {
            "name": "fleet.max_spot_price",
            "rule": "given only for spot workers",
            "got": f"{given.fleet.max_spot_price} with workers {given.fleet.workers}",
            "remedy": "remove it, or set fleet.workers: spot",
        }


def _reservation(given: Sections) -> Iterator[Broken]:
    if not given.fleet or not (found := _kind(given)):
        return
    (kind, rule), named = found, given.fleet.reservation
    name = "fleet.reservation"
    if not rule.reserved and named is not None:
        wanted = "given only with workers capacity_block, reservation or interruptible_reservation"
        got, remedy = f"{named} with workers {kind}", "remove it, or set fleet.workers to what it is"
        yield {"name": name, "rule": wanted, "got": got, "remedy": remedy}
    elif rule.reserved and named is None:
        remedy = "add its id (aws ec2 describe-capacity-reservations lists them)"
        yield {"name": name, "rule": f"given for workers {kind}", "got": "nothing", "remedy": remedy}
    elif rule.reserved and named is not None and not names_reservation(kind, named):
        yield {"name": name, "rule": f"{reservation_rule(kind)}, for workers {kind}", "got": named}


def _reservation_region(given: Sections) -> Iterator[Broken]:
    """Of a group of reservations: an id names one in the region of the launch."""
    named = given.fleet.reservation if given.fleet else None
    if not named or not given.region or not RESOURCE_GROUP.fullmatch(named) or is_of_region(named, given.region):
        return
    rule, remedy = region_rule(GROUP_OF_REGION, given.region), "use a group of that region"
    yield {"name": "fleet.reservation", "rule": rule, "got": named, "remedy": remedy}


def _placement_group_name(given: Sections) -> Iterator[Broken]:
    if not given.fleet or not (found := _kind(given)) or given.fleet.placement_group_name is None:
        return
    kind, rule = found
    if rule.placement is PlacementRule.OF_RESERVATION:
        return
    why = "a block has its place" if rule.placement is PlacementRule.NONE else "a group is made for them"
    yield {
        "name": "fleet.placement_group_name",
        "rule": f"left out for workers {kind}: {why}",
        "got": given.fleet.placement_group_name,
        "remedy": "remove it; it names the group that a reservation was made in",
    }


def _max_nodes_per_group(given: Sections) -> Iterator[Broken]:
    if not given.fleet or not (found := _kind(given)) or given.fleet.max_nodes_per_group is None:
        return
    kind, rule = found
    if given.orchestrator == "parallelcluster":
        why = "left out with parallelcluster, which makes one group for the queue"
    elif not given.fleet.efa:
        why = "left out without EFA: no placement group is made"
    elif rule.placement is not PlacementRule.CLUSTER:
        why = f"left out for workers {kind}: their nodes have their place"
    else:
        return
    remedy = "remove fleet.max_nodes_per_group"
    yield {
        "name": "fleet.max_nodes_per_group",
        "rule": why,
        "got": str(given.fleet.max_nodes_per_group),
        "remedy": remedy,
    }


def _number_of_groups(given: Sections) -> Iterator[Broken]:
    most = given.fleet.max_nodes_per_group if given.fleet else None
    if not given.fleet or not most:
        return
    nodes = given.fleet.nodes + given.fleet.spares
    groups = -(-nodes // most)
    if groups > MOST_GROUPS - 1:  # the coordinator has one of its own
        yield {
            "name": "fleet.max_nodes_per_group",
            "rule": f"such that {nodes} nodes stand in at most {MOST_GROUPS - 1} placement groups",
            "got": f"{most}, which makes {groups}",
            "remedy": f"use {-(-nodes // (MOST_GROUPS - 1))} or more",
        }


def _usage_class(given: Sections) -> Iterator[Broken]:
    found = _kind(given)
    if not found or not given.instance:
        return
    kind, rule = found
    sold = given.instance.usage_classes
    if sold is not None and rule.usage_class not in sold:
        yield {
            "name": "fleet.workers",
            "rule": f"a way in which EC2 sells {given.instance.name}: {', '.join(sorted(sold))}",
            "got": kind.value,
            "remedy": "choose one of these, or another instance type",
        }


def _coordinator_on_demand(given: Sections) -> Iterator[Broken]:
    """Beside spot and interruptible workers the coordinator is on demand; a control coordinator always is."""
    found = _kind(given)
    if not given.fleet or not found or given.orchestrator == "parallelcluster":
        return
    kind, rule = found
    if given.fleet.coordinator == "control":
        name, row = "fleet.control_instance_type", find_instance_type(given.fleet.control_instance_type)
        remedy = "choose another type, such as m7i.large"
    elif rule.interruptible:
        name, row = "fleet.coordinator", given.instance
        remedy = "set fleet.coordinator: control, or buy all nodes in one of these ways"
    else:
        return
    sold = row.usage_classes if row else None
    if row and sold is not None and "on-demand" not in sold:
        yield {
            "name": name,
            "rule": f"bought in a way in which EC2 sells {row.name}: {', '.join(sorted(sold))}",
            "got": f"on_demand, as the coordinator is beside workers {kind}",
            "remedy": remedy,
        }


def _cluster_placement(given: Sections) -> Iterator[Broken]:
    found = _kind(given)
    if not given.fleet or not found or not given.instance or not given.fleet.efa:
        return
    placed = given.instance.cluster_placement
    if found[1].placement is PlacementRule.CLUSTER and not placed:
        got = given.instance.name
        remedy = "choose another type, or set fleet.efa: false"
        if placed is None:
            got = f"{got}, of which it is not known ({given.instance.unknown.get('cluster_placement', NO_SOURCE)})"
            remedy = f"buy it with fleet.workers: capacity_block, or run `{REFRESH}` where the type is offered"
        yield {
            "name": "fleet.instance_type",
            "rule": "a type that starts in a cluster placement group while fleet.efa is on",
            "got": got,
            "remedy": remedy,
        }


def _size_of_a_block(given: Sections) -> Iterator[Broken]:
    if not given.fleet or given.fleet.workers != "capacity_block" or not given.instance:
        return
    nodes = given.fleet.nodes + given.fleet.spares
    if are_too_many_for_a_block(given.instance, nodes):
        yield {
            "name": "fleet.nodes",
            "rule": f"at most the {MOST_NODES_OF_A_BLOCK} instances of one Capacity Block, spares included",
            "got": str(nodes),
            "remedy": "use fewer nodes, or another way to buy them",
        }


def _not_in_a_cluster(given: Sections) -> Iterator[Broken]:
    if given.fleet and given.orchestrator == "parallelcluster" and given.fleet.workers == "interruptible_reservation":
        yield {
            "name": "fleet.workers",
            "rule": "spot, on_demand, capacity_block or reservation with parallelcluster: release 3.16.1 knows no "
            "interruptible reservations",
            "got": given.fleet.workers,
            "remedy": "use orchestrator: fleet, or another way to buy the nodes",
        }


RULES: tuple[Rule, ...] = (
    _spot_price,
    _reservation,
    _reservation_region,
    _placement_group_name,
    _max_nodes_per_group,
    _number_of_groups,
    _usage_class,
    _coordinator_on_demand,
    _cluster_placement,
    _size_of_a_block,
    _not_in_a_cluster,
)
