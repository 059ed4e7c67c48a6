"""400 p5.48xlarge in two placement groups; which nodes share one is data, for Slurm and for the order of ranks."""

import aws_cdk as cdk

from trainfabric_cdk import (
    CheckpointBucket,
    DataBucket,
    EfaClusterPlacementGroup,
    EfaSecurityGroup,
    LustreLinkedToS3,
    SpotTrainingFleet,
    TrainingVpc,
)

NODES, SPARES = 400, 4


class TwoGroups(cdk.Stack):
    """A fleet whose workers are two Auto Scaling groups, one for each placement group."""

    def __init__(self, scope: cdk.App, id: str) -> None:
        super().__init__(scope, id, env=cdk.Environment(region="us-east-1"))
        network = TrainingVpc(self, "Network", availability_zone="us-east-1a")
        efa = EfaSecurityGroup(self, "Nodes", vpc=network.vpc)
        data, checkpoints = DataBucket(self, "Data"), CheckpointBucket(self, "Checkpoints")
        where = {"vpc": network.vpc, "subnet": network.private_subnet}
        lustre = LustreLinkedToS3(self, "Lustre", **where, client_security_group=efa, bucket=data, capacity_gib=48000)
        placement = EfaClusterPlacementGroup(self, "Placement", nodes=NODES + SPARES, max_nodes_per_group=202)
        cdk.CfnOutput(self, "Topology", value=placement.topology.slurm_topology())
        SpotTrainingFleet(
            self,
            "Fleet",
            **where,
            environment="two-groups",
            security_group=efa,
            placement_group=placement,
            instance_type="p5.48xlarge",
            nodes=NODES,
            spares=SPARES,
            data_bucket=data,
            checkpoint_bucket=checkpoints,
            lustre=lustre.mount,
        )


app = cdk.App()
TwoGroups(app, "TwoGroups")
app.synth()
