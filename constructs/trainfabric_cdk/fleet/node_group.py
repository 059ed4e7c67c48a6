"""The Auto Scaling group of one kind of node."""

from __future__ import annotations

from collections.abc import Mapping

from aws_cdk import aws_autoscaling as autoscaling
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from trainfabric_cdk.acknowledge import acknowledge

METRICS = ("GroupDesiredCapacity", "GroupInServiceInstances", "GroupPendingInstances")
"""Group metrics that CloudWatch gets; Auto Scaling sends none unless asked."""

HEALTH_CHECK_GRACE_S = 600
"""How long a new node may fail EC2's status checks: machines with terabytes of memory take minutes to come up. A choice
of ours; a node that is lost is noticed by the controller, whatever the group says."""

_Group = autoscaling.CfnAutoScalingGroup


class NodeGroup(autoscaling.CfnAutoScalingGroup):
    """From no node to `most` nodes of one launch template in one subnet.

    It names no desired capacity: a deploy neither starts nodes nor stops those of a running job. New nodes have no
    scale-in protection; the controller of a job protects those that train.

    What replaces a node is written out, though some of it is EC2's default: only what EC2 finds stopped or gone is
    replaced by the group itself, one for one, the old node first, since neither a placement group nor a reservation
    need have room for another. A rebalance recommendation replaces nothing; the controller hears of it and decides.
    With one subnet there is no zone to balance, so that AZRebalance, which no template can suspend, has nothing to do.
    Without an update policy a deploy replaces no node, and without a mixed instances policy all nodes are bought alike.

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
            capacity_rebalance=False,
            health_check_type="EC2",
            health_check_grace_period=HEALTH_CHECK_GRACE_S,
            instance_maintenance_policy=_Group.InstanceMaintenancePolicyProperty(
                min_healthy_percentage=0, max_healthy_percentage=100
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
