"""A network, a file system linked to a bucket, and four nodes: the constructs by themselves, in one stack."""

import aws_cdk as cdk

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


class Training(cdk.Stack):
    """Everything that a training run needs."""

    def __init__(self, scope: cdk.App, id: str) -> None:
        super().__init__(scope, id, env=cdk.Environment(region="us-east-2"))
        network = TrainingVpc(self, "Network", availability_zone="us-east-2a")
        nodes = EfaSecurityGroup(self, "Nodes", vpc=network.vpc)
        data, checkpoints = DataBucket(self, "Data"), CheckpointBucket(self, "Checkpoints")
        lustre = LustreLinkedToS3(
            self,
            "Lustre",
            vpc=network.vpc,
            subnet=network.private_subnet,
            client_security_group=nodes,
            bucket=data,
            capacity_gib=4800,
            throughput_mbps_per_tib=250,
        )
        SpotTrainingFleet(
            self,
            "Fleet",
            environment="example",
            vpc=network.vpc,
            subnet=network.private_subnet,
            security_group=nodes,
            placement_group=EfaClusterPlacementGroup(self, "Placement"),
            instance_type="p5.48xlarge",
            nodes=4,
            workers=Capacity.spot(),
            data_bucket=data,
            checkpoint_bucket=checkpoints,
            lustre=lustre.mount,
        )


app = cdk.App()
Training(app, "SpotFleet")
app.synth()
