"""AWS Batch, AWS PCS and ParallelCluster."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainfabric_plan.lint.assembly import Assembly
from trainfabric_plan.lint.intrinsics import text_parts
from trainfabric_plan.lint.launches import COMPUTE_ENVIRONMENT, PCS_NODE_GROUP, launches
from trainfabric_plan.lint.model import Broken, Rule, Severity
from trainfabric_plan.lint.values import Resource, Value

_CLUSTER = "Custom::PclusterCluster"
_PROVIDER = re.compile(r"parallelcluster/(\d+)\.(\d+)\.(\d+)/templates/custom_resource/")
_LEAST_VERSION = (3, 14, 1)


def _batch_groups(assembly: Assembly) -> Iterator[Broken]:
    for launch in launches(assembly):
        for user in launch.users:
            groups = user.properties("ComputeResources", "SecurityGroupIds")
            if user.type == COMPUTE_ENVIRONMENT and launch.interfaces and (groups.items or groups.reference):
                yield Broken(
                    at=groups,
                    must=f"absent beside the network interfaces of {launch.resource.id}",
                    remedy="put the groups into Groups of every interface of the launch template",
                )


def _batch_scattered(assembly: Assembly) -> Iterator[Broken]:
    for launch in launches(assembly):
        block = launch.data.at("InstanceMarketOptions", "MarketType").text == "capacity-block"
        for user in launch.users:
            group = user.properties("ComputeResources", "PlacementGroup")
            unplaced = group.is_missing and launch.data.at("Placement").is_missing
            if user.type == COMPUTE_ENVIRONMENT and launch.efa_interfaces and unplaced and not block:
                yield Broken(
                    at=group,
                    must="a cluster placement group for jobs over EFA",
                    got="none",
                    remedy="make an AWS::EC2::PlacementGroup of strategy cluster and name it here",
                )


def _pcs_efa_only(assembly: Assembly) -> Iterator[Broken]:
    for launch in launches(assembly):
        if any(user.type == PCS_NODE_GROUP for user in launch.users):
            for interface in launch.efa_interfaces:
                if interface.at("InterfaceType").text == "efa-only":
                    yield Broken(
                        at=interface.at("InterfaceType"),
                        must="efa for AWS PCS",
                        got="efa-only",
                        remedy="use efa, and count one address of the subnet for each interface",
                    )


def _service_timeout(assembly: Assembly) -> Iterator[Broken]:
    for cluster in assembly.of_type(_CLUSTER):
        timeout = cluster.properties("ServiceTimeout")
        if not timeout.is_missing:
            yield Broken(
                at=timeout,
                must="absent: ParallelCluster's provider takes it for an argument that it does not know, and fails",
                got=None if timeout.is_unknown else timeout.known,
                remedy="remove it (service_timeout of CDK's CustomResource)",
            )


def _provider_version(assembly: Assembly) -> Iterator[Broken]:
    for stack in assembly.of_type("AWS::CloudFormation::Stack"):
        address = stack.properties("TemplateURL")
        match = _PROVIDER.search(_text(assembly, stack, address))
        if match and tuple(map(int, match.groups())) < _LEAST_VERSION:
            yield Broken(
                at=address,
                must="the provider of ParallelCluster 3.14.1 or newer",
                got=".".join(match.groups()),
                remedy="use a newer version: older ones make functions of Python 3.9, which AWS no longer lets be made",
            )


def _text(assembly: Assembly, stack: Resource, address: Value) -> str:
    parts = text_parts(assembly, address.raw, stack.template) if not address.is_missing else []
    return "".join(part if isinstance(part, str) else "VALUE" for part in parts)


RULES = (
    Rule(
        id="batch-groups-beside-interfaces",
        severity=Severity.ERROR,
        title="A compute environment names no groups where the launch template has interfaces",
        why="Batch takes either the compute environment's security groups or the launch template's interfaces.",
        source="https://github.com/aws/aws-cdk/issues/21577, read 2026-11",
        check=_batch_groups,
    ),
    Rule(
        id="batch-efa-placement-group",
        severity=Severity.WARNING,
        title="A compute environment with EFA has a cluster placement group",
        why="Batch asks for all EFA nodes of a multi-node job in one cluster placement group.",
        source="AWS Batch user guide, efa, read 2026-11",
        check=_batch_scattered,
    ),
    Rule(
        id="pcs-efa-only",
        severity=Severity.WARNING,
        title="AWS PCS gets combined EFA interfaces",
        why="The user guide of PCS shows efa alone, and AWS's own templates note that efa-only does not propagate.",
        source="AWS PCS user guide, working-with_networking_efa_create-lt; awslabs/awsome-distributed-ai "
        "add-cng-p6-b300.yaml, read 2026-11",
        check=_pcs_efa_only,
    ),
    Rule(
        id="parallelcluster-service-timeout",
        severity=Severity.ERROR,
        title="No ServiceTimeout at a ParallelCluster custom resource",
        why="The provider hands every property to its library, which refuses the unknown one: the stack fails.",
        source="aws-parallelcluster 3.16.1, pcluster.lib; https://github.com/aws/aws-cdk/pull/30911",
        check=_service_timeout,
    ),
    Rule(
        id="parallelcluster-version",
        severity=Severity.ERROR,
        title="ParallelCluster's provider is 3.14.1 or newer",
        why="Older ones make functions of Python 3.9, which AWS Lambda does not let be made since 2026-08-31.",
        source="https://github.com/aws/aws-parallelcluster/issues/7287, read 2026-11",
        check=_provider_version,
    ),
)
