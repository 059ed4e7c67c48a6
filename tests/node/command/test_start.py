from __future__ import annotations

from pathlib import Path

from tests.node.samples import spec
from tests.node.supervisor.fake_fleet import FakeFleet
from trainfabric_node.agent import Host, Node
from trainfabric_node.command.start import command_start
from trainfabric_node.jobs import JobCommand, JobLedger
from trainfabric_node.jobs.records import now
from trainfabric_node.membership.protocol import EpochNode, EpochOrder, EpochRecord
from trainfabric_node.store import open_store
from trainfabric_plan.contract import CommandVariable, Role
from trainfabric_plan.planning import CommandPlan

ROOT = Path(__file__).parents[3]
PLAN = CommandPlan(
    environment="lab",
    command="./run",
    image=None,
    nodes=2,
    ranks_per_node=8,
    minimum_nodes=2,
    usd_per_hour=None,
    usd_per_hour_at_least=0.0,
    reasons=[],
)
SPEC = spec(recipe=None, plan=PLAN, command=JobCommand(command="./run"), data="s3://data/data/")


def host(tmp_path: Path) -> Host:
    inherited = {
        "PATH": "/usr/bin",
        "PYTHONPATH": "/opt/trainfabric/code",
        "TRAINFABRIC_ASSET_KEY": "a.zip",
        "TRAINFABRIC_LUSTRE_MOUNT_POINT": "/fsx",
        "TRAINFABRIC_PLACEMENT": "2",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    return Host(
        node=Node(instance_id="i-b", address="10.0.0.2", role=Role.WORKER),
        ledger=JobLedger(open_store(str(tmp_path / "bucket"))),
        checkpoint_bucket="s3://checkpoints/",
        state=Path("/var/lib/trainfabric"),
        variables=inherited,
        notices=list,
        fleet=lambda _: FakeFleet(),
    )


def order() -> EpochOrder:
    nodes = (
        EpochNode(instance_id="i-a", address="10.0.0.1", incarnation="a"),
        EpochNode(instance_id="i-b", address="10.0.0.2", incarnation="b"),
    )
    record = EpochRecord(
        job="first", run=1, number=3, nonce="n", nodes=nodes, plan=PLAN, detail="", controller="c", claimed=now()
    )
    return EpochOrder(record=record, resume=False, rendezvous_host="10.0.0.9", rendezvous_port=29400)


def test_a_command_gets_the_variables_of_the_page_and_nothing_of_ours_besides(tmp_path: Path) -> None:
    start = command_start(host(tmp_path), SPEC, order(), 1)

    directory = "/var/lib/trainfabric/runs/first/0001/epochs/00000003"
    assert start.environment == {
        "PATH": "/usr/bin",
        "MASTER_ADDR": "10.0.0.1",
        "MASTER_PORT": "29400",
        "NNODES": "2",
        "NODE_RANK": "1",
        "NPROC_PER_NODE": "8",
        "WORLD_SIZE": "16",
        "TRAINFABRIC_JOB": "first",
        "TRAINFABRIC_RUN": "1",
        "TRAINFABRIC_EPOCH": "3",
        "TRAINFABRIC_CHECKPOINT_URI": "s3://checkpoints/jobs/first/files/",
        "TRAINFABRIC_DATA_URI": "s3://data/data/",
        "TRAINFABRIC_LUSTRE": "/fsx",
        "TRAINFABRIC_STOP_FILE": f"{directory}/stop",
        "TRAINFABRIC_PROGRESS_FILE": f"{directory}/progress.jsonl",
        "TRAINFABRIC_HOSTS": "10.0.0.1,10.0.0.2",
        "TRAINFABRIC_PLACEMENT": "2",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    assert {name.value for name in CommandVariable} <= set(start.given)
    assert "PATH" not in start.given


def test_every_variable_is_on_the_page() -> None:
    page = (ROOT / "docs/own-training-code.md").read_text()

    assert [name.value for name in CommandVariable if f"`{name.value}`" not in page] == []
