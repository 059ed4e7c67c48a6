"""A file system linked to a bucket, for nodes, a VPC and a bucket that exist already: one construct by itself."""

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_s3 as s3

from trainfabric_cdk import LustreLinkedToS3

ZONE = "eu-west-1a"


class FileSystem(cdk.Stack):
    """The file system, its security rules, its link and its alarms."""

    def __init__(self, scope: cdk.App, id: str) -> None:
        super().__init__(scope, id, env=cdk.Environment(region="eu-west-1"))
        vpc = ec2.Vpc.from_vpc_attributes(self, "Vpc", vpc_id="vpc-0123456789abcdef0", availability_zones=[ZONE])
        subnet = ec2.Subnet.from_subnet_attributes(
            self, "Subnet", subnet_id="subnet-0123456789abcdef0", availability_zone=ZONE
        )
        nodes = ec2.SecurityGroup.from_security_group_id(self, "Nodes", "sg-0123456789abcdef0")
        lustre = LustreLinkedToS3(
            self,
            "Lustre",
            vpc=vpc,
            subnet=subnet,
            client_security_group=nodes,
            bucket=s3.Bucket.from_bucket_name(self, "Corpus", "our-tokenised-corpora"),
            capacity_gib=4800,
            throughput_mbps_per_tib=250,
        )
        cdk.CfnOutput(self, "Mount", value=f"{lustre.mount.dns_name}@tcp:/{lustre.mount.mount_name}")


app = cdk.App()
FileSystem(app, "FileSystem")
app.synth()
