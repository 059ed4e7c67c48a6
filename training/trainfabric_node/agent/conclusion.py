"""The end of a run, which the coordinator brings about for all; a worker does if there is no coordinator."""

from __future__ import annotations

import time

from trainfabric_node.agent.host import Host, attempt
from trainfabric_node.jobs.ledger import RunRecords
from trainfabric_node.jobs.records import JobSpec, NodeStatus, now
from trainfabric_plan.contract import Role


def conclude(host: Host, spec: JobSpec) -> None:
    """Waits for the other nodes' end, releases all nodes, says how the run ended and frees the environment.

    In this order: whoever sees the outcome may start the next run at once, and its nodes must not be released then.
    Nothing happens if the environment is not this run's any more.
    """
    records = host.ledger.run(spec.job, spec.run)
    nodes = _await_peers(host, records)
    holder = attempt(host.ledger.current)
    if holder is None or holder.nonce != spec.nonce:
        return
    attempt(host.release_nodes)
    attempt(lambda: records.conclude(records.how_it_ended(nodes)))
    attempt(lambda: host.ledger.release(spec))


def is_headless(host: Host, spec: JobSpec) -> bool:
    """Whether the run has ended on this node, and no coordinator has reported since or for long: none may ever come.

    The nodes would otherwise wait, and cost, without an end.
    """
    records = host.ledger.run(spec.job, spec.run)
    own = attempt(lambda: records.node(host.node.instance_id))
    if own is None or not own.state.ended or not _is_old(own, host):
        return False
    nodes = attempt(records.nodes)
    return nodes is not None and all(_is_old(node, host) for node in nodes if node.role is Role.COORDINATOR)


def _is_old(status: NodeStatus, host: Host) -> bool:
    return (now() - status.updated).total_seconds() > host.patience.absent_s


def _await_peers(host: Host, records: RunRecords) -> list[NodeStatus]:
    deadline = time.monotonic() + host.patience.peers_s
    while True:
        nodes = attempt(records.nodes) or []
        if (nodes and all(node.state.ended for node in nodes)) or time.monotonic() > deadline:
            return nodes
        time.sleep(host.patience.poll_s)
