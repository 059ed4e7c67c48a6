"""Nodes of an On-Demand Capacity Reservation that was made in a placement group: launches must name both."""

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2

from trainfabric_cdk import (
    Capacity,
    CheckpointBucket,
    DataBucket,
    EfaClusterPlacementGroup,
    EfaSecurityGroup,
    LustreLinkedToS3,
    SpotTrainingFleet,
    TrainingVpc,
)


class Reserved(cdk.Stack):
    """The reservation with its group, and a fleet of it."""

    def __init__(self, scope: cdk.App, id: str) -> None:
        super().__init__(scope, id, env=cdk.Environment(region="us-west-2"))
        zone, nodes = "us-west-2a", 8
        group = ec2.PlacementGroup(self, "ReservedPlace", strategy=ec2.PlacementGroupStrategy.CLUSTER)
        reservation = ec2.CfnCapacityReservation(
            self,
            "Reservation",
            availability_zone=zone,
            instance_type="p4d.24xlarge",
            instance_platform="Linux/UNIX",
            instance_count=nodes,
            instance_match_criteria="targeted",
            placement_group_arn=self.format_arn(
                service="ec2", resource="placement-group", resource_name=group.placement_group_name
            ),
        )
        capacity = Capacity.reservation(reservation.ref, placement_group_name=group.placement_group_name)
        network = TrainingVpc(self, "Network", availability_zone=zone)
        efa = EfaSecurityGroup(self, "Nodes", vpc=network.vpc)
        data, checkpoints = DataBucket(self, "Data"), CheckpointBucket(self, "Checkpoints")
        where = {"vpc": network.vpc, "subnet": network.private_subnet}
        lustre = LustreLinkedToS3(self, "Lustre", **where, client_security_group=efa, bucket=data)
        SpotTrainingFleet(
            self,
            "Fleet",
            **where,
            environment="reserved",
            security_group=efa,
            placement_group=EfaClusterPlacementGroup(self, "Placement", capacity=capacity, nodes=nodes),
            instance_type="p4d.24xlarge",
            nodes=nodes,
            workers=capacity,
            data_bucket=data,
            checkpoint_bucket=checkpoints,
            lustre=lustre.mount,
        )


app = cdk.App()
Reserved(app, "Reserved")
app.synth()
