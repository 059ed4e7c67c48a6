"""Launch templates, what launches from them, and which instance types that are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from trainfabric_plan.catalog import InstanceType, instance_type
from trainfabric_plan.errors import NotFound
from trainfabric_plan.lint.assembly import Assembly
from trainfabric_plan.lint.values import Resource, Value

LAUNCH_TEMPLATE = "AWS::EC2::LaunchTemplate"
AUTO_SCALING_GROUP = "AWS::AutoScaling::AutoScalingGroup"
COMPUTE_ENVIRONMENT = "AWS::Batch::ComputeEnvironment"
PCS_NODE_GROUP = "AWS::PCS::ComputeNodeGroup"
EKS_NODE_GROUP = "AWS::EKS::Nodegroup"
EC2_FLEET = "AWS::EC2::EC2Fleet"
INSTANCE = "AWS::EC2::Instance"

EFA_TYPES = ("efa", "efa-only")


@dataclass(frozen=True, kw_only=True)
class Launch:
    """A launch template and everything in the templates at hand that launches from it.

    Attributes:
        resource: The launch template.
        data: Its `LaunchTemplateData`.
        users: Groups, fleets and environments that name it.
    """

    resource: Resource
    data: Value
    users: tuple[Resource, ...]

    @cached_property
    def interfaces(self) -> list[Value]:
        """Its network interfaces."""
        return self.data.at("NetworkInterfaces").items

    @cached_property
    def efa_interfaces(self) -> list[Value]:
        """Its network interfaces with EFA."""
        return [one for one in self.interfaces if one.at("InterfaceType").text in EFA_TYPES]

    @cached_property
    def possible_interfaces(self) -> list[Value]:
        """Its interfaces and those that undecided conditions may give it: to be judged one by one, never counted.

        Where conditions decide about the template or its users, too, theirs may exclude those of the interfaces.
        """
        if any("Condition" in one.body for one in (self.resource, *self.users)):
            return self.interfaces
        return self.data.at("NetworkInterfaces").possible_items

    @property
    def has_placement_group(self) -> bool:
        """Whether it names a placement group, known or not."""
        return any(not self.placement(key).is_missing for key in ("GroupName", "GroupId"))

    def placement(self, key: str) -> Value:
        """One key of its `Placement`."""
        return self.data.at("Placement", key)

    @cached_property
    def instance_types(self) -> list[tuple[str, Value]]:
        """Known names of the instance types that are launched, each with the place that names it."""
        named = [value for user in self.users for value in _types_of_user(user)]
        own_counts = not self.users or any(not _types_of_user(user) for user in self.users)
        if own_counts and not any(user.type == PCS_NODE_GROUP for user in self.users):
            named.append(self.data.at("InstanceType"))
        return [(value.text, value) for value in named if value.text is not None and "." in value.text]


def launches(assembly: Assembly) -> tuple[Launch, ...]:
    """Every launch template of an assembly."""
    return assembly.once(_launches)


def _launches(assembly: Assembly) -> tuple[Launch, ...]:
    users: dict[Resource, dict[Resource, None]] = {}
    for user in assembly.resources:
        for template in _templates_of_user(user):
            users.setdefault(template, {})[user] = None
    return tuple(
        Launch(resource=one, data=one.properties("LaunchTemplateData"), users=tuple(users.get(one, ())))
        for one in assembly.of_type(LAUNCH_TEMPLATE)
    )


def known_type(name: str) -> InstanceType | None:
    """The catalog's row of a type, if it has one that says which cards the type has."""
    try:
        row = instance_type(name)
    except NotFound:
        return None
    return None if row.cards is None else row


def _templates_of_user(user: Resource) -> list[Resource]:
    places = [place.resource(LAUNCH_TEMPLATE) for place in _named_templates(user)]
    return [place for place in places if place is not None]


def _named_templates(user: Resource) -> Iterator[Value]:
    if user.type == AUTO_SCALING_GROUP:
        mixed = user.properties("MixedInstancesPolicy", "LaunchTemplate")
        yield user.properties("LaunchTemplate", "LaunchTemplateId")
        yield mixed.at("LaunchTemplateSpecification", "LaunchTemplateId")
        for override in mixed.at("Overrides").items:
            yield override.at("LaunchTemplateSpecification", "LaunchTemplateId")
    elif user.type == COMPUTE_ENVIRONMENT:
        yield user.properties("ComputeResources", "LaunchTemplate", "LaunchTemplateId")
    elif user.type == PCS_NODE_GROUP:
        yield user.properties("CustomLaunchTemplate", "TemplateId")
    elif user.type == EKS_NODE_GROUP:
        yield user.properties("LaunchTemplate", "Id")
    elif user.type == INSTANCE:
        yield user.properties("LaunchTemplate", "LaunchTemplateId")
    elif user.type == EC2_FLEET:
        for config in user.properties("LaunchTemplateConfigs").items:
            yield config.at("LaunchTemplateSpecification", "LaunchTemplateId")


def _types_of_user(user: Resource) -> list[Value]:
    """Instance types that a group names itself; empty where the launch template's counts."""
    if user.type == COMPUTE_ENVIRONMENT:
        return user.properties("ComputeResources", "InstanceTypes").items
    if user.type == EKS_NODE_GROUP:
        return user.properties("InstanceTypes").items
    return [value for place in _overrides(user) if not (value := place.at("InstanceType")).is_missing]


def _overrides(user: Resource) -> list[Value]:
    if user.type == PCS_NODE_GROUP:
        return user.properties("InstanceConfigs").items
    if user.type == AUTO_SCALING_GROUP:
        return user.properties("MixedInstancesPolicy", "LaunchTemplate", "Overrides").items
    if user.type == EC2_FLEET:
        configs = user.properties("LaunchTemplateConfigs").items
        return [override for config in configs for override in config.at("Overrides").items]
    return []
