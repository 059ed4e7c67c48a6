"""A whole environment in a VPC, a subnet and a bucket that exist already, described in Python instead of a file."""

from trainfabric_plan.environment import validate_environment
from trainfabric_stacks import TrainingEnvironment, training_app

environment = validate_environment(
    {
        "name": "own-vpc",
        "region": "us-west-2",
        "availability_zone": "us-west-2b",
        "network": {
            "vpc_id": "vpc-0123456789abcdef0",
            "subnet_id": "subnet-0123456789abcdef0",
            "route_table_id": "rtb-0123456789abcdef0",  # gets an S3 gateway endpoint
        },
        "storage": {
            "data_bucket": {"name": "our-tokenised-corpora"},
            "lustre": {"capacity_gib": 2400, "throughput_mbps_per_tib": 500},
        },
        "fleet": {"instance_type": "p4d.24xlarge", "nodes": 2, "workers": "spot", "max_spot_price": 12.5},
        "training": {"recipe": "gpt_1b3_4x_p5"},
        "tags": {"team": "language-models"},
    },
    where="examples/bring_your_own_vpc/app.py",
)

app = training_app()
TrainingEnvironment(app, environment)
app.synth()
