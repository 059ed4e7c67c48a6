"""An MPI simulation on eight hpc7a.96xlarge: EFA, Lustre and notices as for training, with a command of your own."""

from trainfabric_plan.environment import validate_environment
from trainfabric_stacks import TrainingEnvironment, training_app

# Every node runs it once; the first starts the ranks of all, the others host them (code/simulate.sh).
COMMAND = "bash simulate.sh"

environment = validate_environment(
    {
        "name": "mpi",
        "region": "us-east-2",
        "availability_zone": "us-east-2b",
        "storage": {"lustre": {"deployment": "scratch_2", "capacity_gib": 4800}},
        "fleet": {
            "instance_type": "hpc7a.96xlarge",
            "nodes": 8,
            "workers": "on_demand",  # hpc types are not sold as spot
            "ami_id": "ami-0123456789abcdef0",  # with the EFA installer's Open MPI
        },
        "training": {"command": COMMAND, "code": "code", "ranks_per_node": 192},
    },
    where="examples/mpi_simulation/app.py",
)

app = training_app()
TrainingEnvironment(app, environment)
app.synth()
