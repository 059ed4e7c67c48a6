"""The Auto Scaling group of one kind of node."""

from __future__ import annotations

from collections.abc import Mapping

from aws_cdk import aws_autoscaling as autoscaling
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from trainfabric_cdk.acknowledge import acknowledge

METRICS = ("GroupDesiredCapacity", "GroupInServiceInstances", "GroupPendingInstances")
"""Group metrics that CloudWatch gets; Auto Scaling sends none unless asked."""

_Group = autoscaling.CfnAutoScalingGroup


class NodeGroup(autoscaling.CfnAutoScalingGroup):
    """From no node to `most` nodes of one launch template in one subnet.

    It names no desired capacity: a deploy neither starts nodes nor stops those of a running job. New nodes have no
    scale-in protection; the controller of a job protects those that train. Capacity rebalancing stays off, because it
    launches replacements before it terminates and the placement group need not have room.

    It launches the default version of the template, which only `trainfabric job start` moves: it makes a version of the
    job's own from the newest one and makes that the default. CloudFormation adds versions and leaves the default alone
    (cloudformation-coverage-roadmap issue 1518), so a deploy during a run leaves the group on the job's version. The
    number has to be looked up at deploy time, since CloudFormation takes no `$Default` here (issue 295).
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        name: str,
        launch_template: ec2.CfnLaunchTemplate,
        subnet: ec2.ISubnet,
        most: int,
        tags: Mapping[str, str],
    ) -> None:
        super().__init__(
            scope,
            id,
            auto_scaling_group_name=name,
            min_size="0",
            max_size=str(most),
            vpc_zone_identifier=[subnet.subnet_id],
            launch_template=_Group.LaunchTemplateSpecificationProperty(
                launch_template_id=launch_template.ref, version=launch_template.attr_default_version_number
            ),
            metrics_collection=[_Group.MetricsCollectionProperty(granularity="1Minute", metrics=list(METRICS))],
            tags=[
                _Group.TagPropertyProperty(key=key, value=value, propagate_at_launch=True)
                for key, value in sorted(tags.items())
            ],
        )
        acknowledge(
            self,
            "AwsSolutions-AS3",
            "Jobs scale the group; interruptions reach people through the topic of the fleet",
        )
