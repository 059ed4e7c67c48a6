"""What a fleet refuses before anything is deployed, and what it warns of."""

from __future__ import annotations

import re
from collections.abc import Iterator

from aws_cdk import Annotations, Stack
from aws_cdk import aws_ec2 as ec2
from constructs import IConstruct

from trainfabric_cdk.capacity import Capacity
from trainfabric_cdk.errors import at_construct, is_known, is_whole_number, property_error, refuse
from trainfabric_cdk.fleet.coordinator import Coordinator
from trainfabric_cdk.forms import image_mistakes
from trainfabric_cdk.network import EfaSecurityGroup, zone_of
from trainfabric_cdk.storage import LustreMount
from trainfabric_plan.catalog import InstanceType, no_bandwidth, offers_bandwidth
from trainfabric_plan.catalog import instance_type as catalog_row
from trainfabric_plan.errors import Mistake
from trainfabric_plan.mount_points import beside_home_problem, mount_point_problem
from trainfabric_plan.own_command import IMAGE_RULE, is_pinned_image

_ENVIRONMENT = re.compile(r"[a-z][a-z0-9-]{1,29}")
_DEVICE = re.compile(r"/dev/[a-z0-9]+")


def checked_instance(
    scope: IConstruct, instance_type: object, *, efa: bool, name: str = "instance_type"
) -> InstanceType:
    """The catalog's row of the one instance type, given as the property `name`.

    Raises:
        PropertyError: If it is not one, not known, or has no EFA where EFA is asked.
    """
    if not isinstance(instance_type, str):
        got = ", ".join(map(str, instance_type)) if isinstance(instance_type, list | tuple | set) else instance_type
        raise property_error(scope, name, "one instance type, as text: EFA and the ranks need equal nodes", got)
    if not is_known(instance_type):
        remedy = "give it as text: the interfaces of a node follow from it"
        raise property_error(scope, name, "a type of the catalog", "a token", remedy)
    with at_construct(scope):
        row = catalog_row(instance_type)
        without_efa = efa and not row.efa_interface_count
    if without_efa:
        remedy = "choose a type with EFA or set efa=False"
        raise property_error(scope, name, "a type with EFA while efa is on", row.name, remedy)
    return row


def check_image(scope: IConstruct, instance: InstanceType, image_id: str | None) -> None:
    """The default image fits NVIDIA accelerators on x86_64 alone.

    Raises:
        PropertyError: If another kind of node is given no image of its own, or what is given is no image.
    """
    refuse(image_mistakes(scope.node.path, image_id))
    if image_id is None and (instance.maker == "aws" or instance.architecture != "x86_64"):
        kind = instance.accelerator or instance.architecture
        rule = f"given for {instance.name}: the default image has drivers for NVIDIA on x86_64, not for {kind}"
        raise property_error(scope, "image_id", rule, "nothing", "give the id of an image with its drivers")


def check_training(scope: IConstruct, instance: InstanceType, *, own_command: bool, training_image: str | None) -> None:
    """Trainium runs commands alone, and only commands run in a container.

    Raises:
        PropertyError: If a fleet of Trainium is to train recipes, or an image is given without a command or is not
            pinned.
    """
    if instance.maker == "aws" and not own_command:
        rule = f"True for {instance.name}: the engine of the recipes has no Neuron backend"
        remedy = "set it, and start jobs with training.command (docs/own-training-code.md)"
        raise property_error(scope, "own_command", rule, own_command, remedy)
    if training_image is None:
        return
    if not own_command:
        got = repr(training_image) if is_known(training_image) else "a token"
        raise property_error(scope, "training_image", "given only with own_command", got, "set that")
    if not is_known(training_image):
        Annotations.of(scope).add_warning_v2(
            "trainfabric:trainingImageUnknown",
            "whether training_image lies in ECR is known only when deployed, so that the nodes get no permission to "
            "pull it: let them, with repository.grant_pull(fleet)",
        )
    elif not is_pinned_image(training_image):
        remedy = "write it as docker pull takes it, with :TAG or @sha256:…"
        raise property_error(scope, "training_image", IMAGE_RULE, repr(training_image), remedy)


def check_interfaces(scope: IConstruct, instance: InstanceType, interfaces: object, *, efa: bool) -> None:
    """Refuse a layout that the type does not have.

    Raises:
        PropertyError: If interfaces for bandwidth are asked of a type that has no such layout.
    """
    if not is_known(interfaces):
        remedy = "give it as text: what is launched follows from it"
        raise property_error(scope, "interfaces", "addresses or bandwidth", "a token", remedy)
    if interfaces == "addresses":
        return
    if interfaces != "bandwidth":
        raise property_error(scope, "interfaces", "addresses or bandwidth", repr(interfaces))
    if not efa or not offers_bandwidth(instance):
        why = f"for {instance.name}{no_bandwidth(instance)}" if efa else "without EFA: a node has one interface"
        raise property_error(scope, "interfaces", f"addresses {why}", "bandwidth", "leave it out")


def check_fleet(
    scope: IConstruct,
    *,
    environment: str,
    subnet: object,
    nodes: object,
    spares: object,
    workers: object,
    coordinator: object,
    mount_point: str,
    root_device: str,
    shared_home: bool,
) -> None:
    """Refuse values that cannot work whatever the instance type is.

    Raises:
        PropertyError: With every mistake.
    """
    where = scope.node.path
    refuse(
        (
            *_name_and_place(where, environment, subnet),
            *node_mistakes(where, nodes, workers),
            *_spare_mistakes(where, nodes, spares, coordinator),
            *_coordinator_mistakes(where, coordinator),
            *_disks(where, mount_point, root_device, shared_home=shared_home),
        )
    )


def node_mistakes(where: str, nodes: object, workers: object) -> Iterator[Mistake]:
    """What is wrong with the number of nodes and how they are bought; what is launched follows from both."""
    if not is_known(nodes):
        remedy = "give it as a number: what is launched follows from it"
        yield Mistake(where=where, name="nodes", rule="at least 1", got="a token", remedy=remedy)
    elif not is_whole_number(nodes):
        yield Mistake(where=where, name="nodes", rule="a whole number", got=repr(nodes))
    elif nodes < 1:
        yield Mistake(where=where, name="nodes", rule="at least 1", got=str(nodes))
    if workers is not None and not isinstance(workers, Capacity):
        remedy = "use Capacity.spot(), .on_demand(), .block(), .reservation() or .interruptible_reservation()"
        yield Mistake(where=where, name="workers", rule="a Capacity", got=repr(workers), remedy=remedy)


def _coordinator_mistakes(where: str, coordinator: object) -> Iterator[Mistake]:
    if not isinstance(coordinator, Coordinator):
        remedy = "use Coordinator.training() or Coordinator.control()"
        yield Mistake(where=where, name="coordinator", rule="a Coordinator", got=repr(coordinator), remedy=remedy)


def _spare_mistakes(where: str, nodes: object, spares: object, coordinator: object) -> Iterator[Mistake]:
    if not is_known(spares):
        remedy = "give it as a number: what is launched follows from it"
        yield Mistake(where=where, name="spares", rule="at least 0", got="a token", remedy=remedy)
    elif not is_whole_number(spares):
        yield Mistake(where=where, name="spares", rule="a whole number", got=repr(spares))
    elif spares < 0:
        yield Mistake(where=where, name="spares", rule="at least 0", got=str(spares))
    elif spares and nodes == 1 and (not isinstance(coordinator, Coordinator) or coordinator.trains):
        rule = "0 for one node: spares take the place of workers"
        yield Mistake(where=where, name="spares", rule=rule, got=str(spares), remedy="add nodes")


def _name_and_place(where: str, environment: str, subnet: object) -> Iterator[Mistake]:
    if is_known(environment) and not _ENVIRONMENT.fullmatch(environment):
        rule = "2 to 30 lower-case letters, digits and hyphens, a letter first"
        yield Mistake(where=where, name="environment", rule=rule, got=repr(environment))
    if isinstance(subnet, list | tuple):
        rule = "one subnet: EFA and a cluster placement group do not cross zones"
        yield Mistake(where=where, name="subnet", rule=rule, got=f"{len(subnet)} subnets")


def _disks(where: str, mount_point: str, root_device: str, *, shared_home: bool) -> Iterator[Mistake]:
    problem = mount_point_problem(mount_point) if is_known(mount_point) else None
    if shared_home and is_known(mount_point) and not problem:
        problem = beside_home_problem(mount_point)
    if problem:
        yield Mistake(
            where=where, name="lustre_mount_point", rule=problem.rule, got=repr(mount_point), remedy=problem.remedy
        )
    if is_known(root_device) and not _DEVICE.fullmatch(root_device):
        rule, remedy = "the name of a device", "use what aws ec2 describe-images shows as RootDeviceName"
        yield Mistake(where=where, name="root_device", rule=rule, got=repr(root_device), remedy=remedy)


def warn_of_slow_network(scope: IConstruct, instance: InstanceType, *, nodes: int, efa: bool, placed: bool) -> None:
    """Warn where several nodes would be slower than what they cost, though they would run."""
    warn = Annotations.of(scope).add_warning_v2
    if nodes > 1 and not efa and instance.efa_interface_count:
        warn("trainfabric:efaOff", f"{instance.name} has EFA, but efa is off: the ranks talk over TCP")
    if nodes > 1 and efa and not placed:
        warn(
            "trainfabric:noPlacementGroup",
            "nodes with EFA stand anywhere in the zone without an EfaClusterPlacementGroup: give placement_group",
        )


def warn_of_distant_lustre(scope: IConstruct, *, subnet: ec2.ISubnet, lustre: LustreMount) -> None:
    """Warn where nodes read a file system of another zone: it works, over a longer way that is billed.

    What crosses zones is billed, and slower (EFS user guide, mounting-one-zone, of a file system with servers in one
    zone as those of Lustre; read 2026-12). Nothing is said where either zone is not known.
    """
    nodes, files = zone_of(subnet), lustre.availability_zone
    if nodes and files and is_known(files) and nodes != files:
        Annotations.of(scope).add_warning_v2(
            "trainfabric:lustreInAnotherZone",
            f"the nodes are in {nodes} and their Lustre file system is in {files}: all that they read and write "
            "crosses zones, which is slower and billed by the gigabyte; use a subnet of the same zone",
        )


def warn_of_closed_security_group(scope: IConstruct, group: ec2.ISecurityGroup, *, nodes: int, efa: bool) -> None:
    """Warn where EFA traffic would be dropped: a group of the CDK has no rule to itself, whatever it lets out.

    A group that exists already is taken at its word.
    """
    made_here = isinstance(group, ec2.SecurityGroup) and not isinstance(group, EfaSecurityGroup)
    if nodes > 1 and efa and made_here and not _lets_out_to_itself(group):
        Annotations.of(scope).add_warning_v2(
            "trainfabric:securityGroupWithoutSelfEgress",
            f"{group.node.path} has no egress rule to itself, so EFA between the nodes does not get through: "
            "use an EfaSecurityGroup",
        )


def _lets_out_to_itself(group: ec2.ISecurityGroup) -> bool:
    itself = group.security_group_id
    return any(
        (rule.group_id, rule.destination_security_group_id, rule.ip_protocol) == (itself, itself, "-1")
        for rule in Stack.of(group).node.find_all()
        if isinstance(rule, ec2.CfnSecurityGroupEgress)
    )
