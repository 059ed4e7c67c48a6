"""Eighteen p6e-gb200.36xlarge, an UltraServer of 72 GPUs: arm64, from a capacity block, with a command of your own."""

from trainfabric_plan.environment import validate_environment
from trainfabric_stacks import TrainingEnvironment, training_app

environment = validate_environment(
    {
        "name": "gb200",
        "region": "us-east-1",
        "availability_zone": "us-east-1d",
        "fleet": {
            "instance_type": "p6e-gb200.36xlarge",
            "nodes": 18,
            "workers": "capacity_block",
            "reservation": "cr-0123456789abcdef0",
            "ami_id": "ami-0123456789abcdef0",  # arm64, with NVIDIA's driver and IMEX
            "coordinator": "control",
            "control_instance_type": "m7g.large",  # arm64 as well: one image for all
        },
        "training": {
            "command": "torchrun --nnodes $NNODES --node-rank $NODE_RANK --nproc-per-node 4"
            " --master-addr $MASTER_ADDR --master-port $MASTER_PORT pretrain.py",
            "code": "code",
        },
    },
    where="examples/gb200/app.py",
)

app = training_app()
TrainingEnvironment(app, environment)
app.synth()
