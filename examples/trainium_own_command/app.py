"""Trainium nodes for training code of one's own, such as NeuronX Distributed, in a container of one's own."""

from trainfabric_plan.environment import validate_environment
from trainfabric_stacks import TrainingEnvironment, training_app

ACCOUNT, REGION = "123456789012", "us-east-2"
COMMAND = (
    "exec torchrun --nnodes $NNODES --node-rank $NODE_RANK --nproc-per-node $NPROC_PER_NODE "
    "--master-addr $MASTER_ADDR --master-port $MASTER_PORT "
    "run_llama_nxd.py --checkpoint_dir $TRAINFABRIC_LUSTRE/checkpoints/$TRAINFABRIC_JOB"
)
ENVIRONMENT = {
    "name": "trainium",
    "region": REGION,
    "availability_zone": "us-east-2b",
    "account": ACCOUNT,
    "storage": {"lustre": {"capacity_gib": 2400, "throughput_mbps_per_tib": 250}},
    "fleet": {
        "instance_type": "trn1.32xlarge",
        "nodes": 4,
        "ami_id": "ami-0123456789abcdef0",  # a Neuron image: the default one has drivers for NVIDIA
    },
    "training": {
        "command": COMMAND,
        "image": f"{ACCOUNT}.dkr.ecr.{REGION}.amazonaws.com/neuronx:2026-11",
        "ranks_per_node": 32,  # one process for each NeuronCore
    },
}


def main() -> None:
    app = training_app()
    TrainingEnvironment(app, validate_environment(ENVIRONMENT, "app.py"))
    app.synth()


main()
