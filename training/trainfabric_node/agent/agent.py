"""The supervisor of a node: waits for the environment's job, takes part in it, and waits for the next."""

from __future__ import annotations

import logging
import signal
from types import FrameType

from trainfabric_node.agent.bell import Bell
from trainfabric_node.agent.command import trainer_variables
from trainfabric_node.agent.crew import Crew
from trainfabric_node.agent.host import Host, Node, attempt
from trainfabric_node.agent.launcher import Launcher
from trainfabric_node.agent.notices import notices_of
from trainfabric_node.agent.run import NodeRun
from trainfabric_node.jobs.fleet import Fleet
from trainfabric_node.jobs.ledger import JobLedger
from trainfabric_node.jobs.records import JobSpec
from trainfabric_node.membership.protocol import Pins
from trainfabric_node.metadata import InstanceMetadata
from trainfabric_node.settings import NodeSettings, inherited_variables
from trainfabric_node.store import open_store
from trainfabric_plan.contract import LAUNCHER_SOCKET

_LOG = logging.getLogger(__name__)
_THREADS_S = 5.0


def run_agent(settings: NodeSettings) -> None:
    """Supervises this node until SIGTERM or SIGINT, which let the ranks leave with a checkpoint first.

    Raises:
        Unreachable: If the metadata service does not say who this node is.
    """
    serve(host_of(settings))


def serve(host: Host) -> None:
    """Takes part in one run after the other until a signal asks to leave; call it from the main thread."""
    bell = Bell()
    departure = _Departure(bell)
    launcher = Launcher(host.state / LAUNCHER_SOCKET, bell.ring)
    crew = Crew(bell)
    crew.start("launcher", launcher.run, launcher.stop)
    _LOG.info("%s %s at %s: waiting for a job", host.node.role, host.node.instance_id, host.node.address)
    followed: set[str] = set()
    try:
        while not departure.asked:
            crew.check()
            spec = attempt(host.ledger.current)
            if spec is not None and spec.nonce not in followed and _is_open(host, spec):
                NodeRun(host, spec, launcher, bell, lambda: departure.asked).follow()
                followed.add(spec.nonce)
            if not departure.asked:
                bell.wait(host.poll_s)
    finally:
        crew.stop(_THREADS_S)


class _Departure:
    """Whether a signal has asked the supervisor to leave."""

    def __init__(self, bell: Bell) -> None:
        self.asked = False
        self._bell = bell
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._ask)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        self.asked = True
        self._bell.ring()


def _is_open(host: Host, spec: JobSpec) -> bool:
    """Whether the run has not ended, as far as the bucket answers."""
    return attempt(host.ledger.run(spec.job, spec.run).outcome) is None


def host_of(settings: NodeSettings) -> Host:
    """This node and its surroundings, as settings and the metadata service tell."""
    metadata = InstanceMetadata(settings.metadata_endpoint)
    bucket = f"s3://{settings.checkpoint_bucket}/"
    return Host(
        node=Node(
            instance_id=metadata.instance_id(),
            address=metadata.local_ipv4(),
            role=settings.role,
            pins=Pins(asset_key=settings.asset_key, image_id=metadata.image_id()),
            placement=settings.placement,
        ),
        ledger=JobLedger(open_store(bucket)),
        checkpoint_bucket=bucket,
        state=settings.state,
        variables=trainer_variables(inherited_variables(), settings.region),
        notices=lambda: notices_of(metadata),
        fleet=lambda spec: Fleet.of_job(spec, settings.region),
    )
