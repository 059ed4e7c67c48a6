"""The launch template of a node, as an L1 resource: the L2 has no network interfaces (aws-cdk issue 30891)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import jsii
from aws_cdk import CfnTag, Fn, IStableStringProducer, Lazy, Stack
from aws_cdk import aws_autoscaling as autoscaling
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from trainfabric_cdk.capacity import Capacity
from trainfabric_plan.catalog import Interface

DEFAULT_IMAGE = "resolve:ssm:/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-24.04/latest/ami-id"
"""The newest Deep Learning base image (Ubuntu 24.04, NVIDIA driver, EFA); EC2 resolves it when a node launches."""

ROOT_VOLUME_GIB = 200

_Launch = ec2.CfnLaunchTemplate


class NodeLaunchTemplate(ec2.CfnLaunchTemplate):
    """One kind of node of a fleet.

    Security groups stand at the interfaces, never at the instance: EC2 refuses both together. No interface names a
    subnet: the Auto Scaling group does, as eksctl and terraform-aws-eks have it for nodes with EFA. Metadata is IMDSv2
    with two hops, so that containers reach it; without instance tags, whose keys EC2 would then restrict for everybody.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        instance_type: str,
        image_id: str,
        interfaces: Sequence[Interface],
        security_group: ec2.ISecurityGroup,
        associate_public_ip: bool,
        placement_group: str | None,
        profile: iam.CfnInstanceProfile,
        capacity: Capacity,
        root_device: str,
        volume_key: kms.IKey | None,
        user_data: str,
        tags: Mapping[str, str],
    ) -> None:
        group = security_group.security_group_id  # once: every reading of it asks the process behind the CDK
        super().__init__(
            scope,
            id,
            tag_specifications=[
                _Launch.LaunchTemplateTagSpecificationProperty(resource_type="launch-template", tags=_tags(tags))
            ],
            launch_template_data=_Launch.LaunchTemplateDataProperty(
                instance_type=instance_type,
                image_id=image_id,
                iam_instance_profile=_Launch.IamInstanceProfileProperty(arn=profile.attr_arn),
                instance_market_options=capacity.market_options(),
                capacity_reservation_specification=capacity.reservation_specification(),
                instance_initiated_shutdown_behavior="terminate",
                network_interfaces=[
                    _network_interface(interface, group, associate_public_ip) for interface in interfaces
                ],
                placement=_placement(placement_group),
                metadata_options=_metadata_options(),
                block_device_mappings=[_root_volume(root_device, volume_key)],
                monitoring=_Launch.MonitoringProperty(enabled=True),
                tag_specifications=_tag_specifications(tags),
                user_data=Fn.base64(user_data),
            ),
        )

    def describe(self, group: autoscaling.CfnAutoScalingGroup) -> None:
        """Put what a deploy may change in the group of these nodes into the description of the version.

        CloudFormation looks the default version up only when it updates the template, and gives a group that it updates
        alone the number of that time (cloudformation-coverage-roadmap issue 68): the group of a running job would fall
        back to what was deployed before the job. So a change of the group is a change of its template, too.
        """
        self.version_description = Lazy.string(_InWords(group))


@jsii.implements(IStableStringProducer)
class _InWords:
    """A group's largest size, and a hash of all else that CloudFormation would update, once the stack is whole."""

    def __init__(self, group: autoscaling.CfnAutoScalingGroup) -> None:
        self._group = group

    def produce(self) -> str:
        properties = json.dumps(_properties(self._group), sort_keys=True)
        return f"group of at most {self._group.max_size}, {hashlib.sha256(properties.encode()).hexdigest()[:12]}"


def _properties(group: autoscaling.CfnAutoScalingGroup) -> dict[str, Any]:
    """What its template says of a group, but for the launch template, which is updated itself; without overrides."""
    found = Stack.of(group).resolve(group._cfn_properties)
    return {name: value for name, value in found.items() if name != "launchTemplate"}


def _network_interface(
    interface: Interface, group: str, associate_public_ip: bool
) -> ec2.CfnLaunchTemplate.NetworkInterfaceProperty:
    return _Launch.NetworkInterfaceProperty(
        network_card_index=interface.card,
        device_index=interface.device,
        interface_type=interface.type.value,
        groups=[group],
        # Absent unless asked for: beside several interfaces EC2 refuses the parameter (karpenter PR 5666).
        associate_public_ip_address=True if associate_public_ip else None,
        delete_on_termination=True,
    )


def _placement(group: str | None) -> ec2.CfnLaunchTemplate.PlacementProperty | None:
    return None if group is None else _Launch.PlacementProperty(group_name=group)


def _metadata_options() -> ec2.CfnLaunchTemplate.MetadataOptionsProperty:
    return _Launch.MetadataOptionsProperty(
        http_endpoint="enabled", http_tokens="required", http_put_response_hop_limit=2
    )


def _root_volume(device: str, key: kms.IKey | None) -> ec2.CfnLaunchTemplate.BlockDeviceMappingProperty:
    volume = _Launch.EbsProperty(
        encrypted=True,
        kms_key_id=key.key_arn if key else None,
        volume_type="gp3",
        volume_size=ROOT_VOLUME_GIB,
        delete_on_termination=True,
    )
    return _Launch.BlockDeviceMappingProperty(device_name=device, ebs=volume)


def _tag_specifications(tags: Mapping[str, str]) -> list[ec2.CfnLaunchTemplate.TagSpecificationProperty]:
    return [
        _Launch.TagSpecificationProperty(resource_type=kind, tags=_tags(tags))
        for kind in ("instance", "volume", "network-interface")
    ]


def _tags(tags: Mapping[str, str]) -> list[CfnTag]:
    return [CfnTag(key=key, value=value) for key, value in sorted(tags.items())]
