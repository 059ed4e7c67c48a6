"""The agent: waits for the environment's job, takes part in it, and waits for the next."""

from __future__ import annotations

import logging
import signal
import time
from functools import partial
from types import FrameType

from trainfabric_node.agent.conclusion import conclude, is_headless
from trainfabric_node.agent.host import Host, attempt
from trainfabric_node.agent.launch import Node
from trainfabric_node.agent.metrics import CloudWatch
from trainfabric_node.agent.run import NodeRun
from trainfabric_node.jobs.fleet import Fleet, read_deployed
from trainfabric_node.jobs.ledger import JobLedger
from trainfabric_node.jobs.records import JobSpec, NodeState, NodeStatus, StopRequest, now
from trainfabric_node.metadata import InstanceMetadata
from trainfabric_node.settings import NodeSettings, inherited_variables
from trainfabric_node.store import open_store
from trainfabric_plan.contract import Role

_LOG = logging.getLogger(__name__)


def run_agent(settings: NodeSettings) -> None:
    """Runs this node's agent until SIGTERM or SIGINT, which end a running trainer with a checkpoint first.

    Raises:
        Unreachable: If the metadata service does not say who this node is.
    """
    host = _host(settings, InstanceMetadata(settings.metadata_endpoint))

    def leave(number: int, frame: FrameType | None) -> None:
        host.leaving.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, leave)
    serve(host)


def serve(host: Host) -> None:
    """Takes part in one run after the other until `host.leaving` is set."""
    _LOG.info("%s %s at %s: waiting for a job", host.node.role, host.node.instance_id, host.node.address)
    while not host.leaving.is_set():
        spec = attempt(host.ledger.current)
        if spec is not None:
            attempt(partial(_take_part, host, spec))
        time.sleep(host.patience.poll_s)


def _take_part(host: Host, spec: JobSpec) -> None:
    records = host.ledger.run(spec.job, spec.run)
    if records.outcome():
        return
    before = records.node(host.node.instance_id)
    if before is None:
        NodeRun(host, spec).follow()
    elif not before.state.ended:
        _report_restart(host, spec)
    if host.node.role is Role.COORDINATOR or is_headless(host, spec):
        conclude(host, spec)


def _report_restart(host: Host, spec: JobSpec) -> None:
    """An agent that starts anew in the middle of a run has lost its trainer, and the run with it."""
    detail = "the agent started anew in the middle of the run"
    records, node = host.ledger.run(spec.job, spec.run), host.node
    records.request_stop(StopRequest(reason="failed", detail=f"on {node.instance_id}: {detail}", requested=now()))
    records.report(
        NodeStatus(instance_id=node.instance_id, role=node.role, state=NodeState.FAILED, detail=detail, updated=now())
    )


def _host(settings: NodeSettings, metadata: InstanceMetadata) -> Host:
    bucket = f"s3://{settings.checkpoint_bucket}/"

    def interruption() -> str | None:
        action = metadata.spot_action()
        return f"spot notice: {action.action} at {action.time}" if action else None

    return Host(
        node=Node(instance_id=metadata.instance_id(), address=metadata.local_ipv4(), role=settings.role),
        region=settings.region,
        ledger=JobLedger(open_store(bucket)),
        checkpoint_bucket=bucket,
        state=settings.state,
        variables=inherited_variables(),
        interruption=interruption,
        release_nodes=lambda: Fleet(read_deployed(settings.environment, settings.region)).scale_down(),
        metrics=CloudWatch(settings.environment, settings.region),
        rendezvous_port=settings.rendezvous_port,
    )
