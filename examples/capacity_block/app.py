"""Sixteen p5en.48xlarge of a Capacity Block for ML, bought beforehand; a small node outside the block controls."""

from trainfabric_plan.environment import validate_environment
from trainfabric_stacks import TrainingEnvironment, training_app

environment = validate_environment(
    {
        "name": "block",
        "region": "us-east-2",
        "availability_zone": "us-east-2b",  # the zone that the block was bought in
        "storage": {"lustre": {"required_throughput_mbps": 4000}},
        "fleet": {
            "instance_type": "p5en.48xlarge",
            "nodes": 16,
            "workers": "capacity_block",
            "reservation": "cr-0123456789abcdef0",
            "coordinator": "control",  # outlives the block, and none of its nodes is spent on control
        },
        "training": {"recipe": "gpt_1b3_4x_p5"},
    },
    where="examples/capacity_block/app.py",
)

app = training_app()
TrainingEnvironment(app, environment)
app.synth()
