"""The controller: waits for the environment's job, says which of its nodes train, and waits for the next."""

from __future__ import annotations

import logging
import signal
import threading
from functools import partial
from types import FrameType

from trainfabric_node.jobs.fleet import Fleet, read_deployed
from trainfabric_node.jobs.ledger import JobLedger
from trainfabric_node.jobs.records import JobSpec, Outcome
from trainfabric_node.membership.announced import Announcements
from trainfabric_node.membership.client import answers
from trainfabric_node.membership.idle import Idle
from trainfabric_node.membership.metrics import CloudWatch
from trainfabric_node.membership.protocol import Answer, Beat
from trainfabric_node.membership.server import ControlServer
from trainfabric_node.membership.session import Session, Station, attempt
from trainfabric_node.metadata import InstanceMetadata
from trainfabric_node.settings import NodeSettings
from trainfabric_node.store import open_store
from trainfabric_plan.errors import Refused

_LOG = logging.getLogger(__name__)
_PROBE_S = 2.0


def run_controller(settings: NodeSettings) -> None:
    """Runs this node's controller until SIGTERM or SIGINT; all that it knows is in the bucket or said again.

    Raises:
        Unreachable: If the metadata service does not say who this node is.
        InvalidInput: If the port is taken.
        Refused: If another controller goes on with the run.
    """
    controller = Controller(_station(settings))

    def leave(number: int, frame: FrameType | None) -> None:
        controller.leave()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, leave)
    controller.serve()


class Controller:
    """Serves one run after the other.

    Args:
        station: Its node and surroundings.
    """

    def __init__(self, station: Station) -> None:
        self._station = station
        self._leaving = threading.Event()
        self._session: Session | None = None
        self._refused = ""

    def leave(self) -> None:
        """Lets `serve` return soon; nothing is asked of the nodes."""
        self._leaving.set()
        if self._session is not None:
            self._session.wake()

    def serve(self) -> None:
        """Listens, and serves until `leave`; raises `Refused` if another controller goes on with the run."""
        station = self._station
        with ControlServer(station.address, station.control_port, self._respond) as server:
            _LOG.info("controller %s on %s: waiting for a job", station.incarnation, station.instance_id)
            done: set[str] = set()
            idle = Idle(station.ledger, station.deployed, station.fleet, station.clock)
            while not self._leaving.is_set():
                spec = attempt(station.ledger.current)
                idle.look(spec)
                if spec is not None and spec.nonce not in done and self._serve_run(spec, server.port):
                    done.add(spec.nonce)
                self._leaving.wait(station.poll_s)

    def _respond(self, beat: Beat) -> Answer:
        session = self._session
        if session is None:
            raise Refused("controller: a job must be running, got a beat before one is known; say it again later")
        return session.respond(beat)

    def _serve_run(self, spec: JobSpec, port: int) -> bool:
        """Follows a run; whether it is over, as far as this controller is concerned."""
        session = attempt(lambda: self._begin(spec, port))
        if session is None:
            return False
        if isinstance(session, Session):
            self._session = session
            session.follow(self._leaving.is_set)
        return True

    def _begin(self, spec: JobSpec, port: int) -> Session | Outcome | None:
        """The run, if it is this controller's; how it has ended, if it has. Raises `Unreachable`."""
        outcome = self._station.ledger.run(spec.job, spec.run).outcome()
        if outcome:
            self._station.ledger.release(spec)  # whoever concluded it did not get so far
            return outcome
        return self._take(spec, port) if self._may_take(spec) else None

    def _take(self, spec: JobSpec, port: int) -> Session:
        controller = self._station.as_announced(port)
        session = Session(self._station, spec, controller)
        self._station.ledger.run(spec.job, spec.run).announce(controller)
        _LOG.info("job %s, run %d: taken over", spec.job, spec.run)
        return session

    def _may_take(self, spec: JobSpec) -> bool:
        """Whether no other controller is alive that is announced as the run's."""
        station = self._station
        other = station.ledger.run(spec.job, spec.run).controller()
        if other is None or other.instance_id == station.instance_id:
            return True
        if not answers(other.host, other.port, _PROBE_S):
            return True
        if self._refused != other.incarnation:
            self._refused = other.incarnation
            _LOG.info("job %s: the controller on %s goes on", spec.job, other.instance_id)
        return False


def _station(settings: NodeSettings) -> Station:
    metadata, queue = InstanceMetadata(settings.metadata_endpoint), settings.events_queue
    return Station(
        instance_id=metadata.instance_id(),
        address=metadata.local_ipv4(),
        control_port=settings.control_port,
        rendezvous_port=settings.rendezvous_port,
        ledger=JobLedger(open_store(f"s3://{settings.checkpoint_bucket}/")),
        fleet=lambda spec: Fleet.of_job(spec, settings.region),
        deployed=lambda: Fleet.of(read_deployed(settings.environment, settings.region)),
        metrics=CloudWatch(settings.environment, settings.region),
        announcements=partial(Announcements, queue, settings.region) if queue else None,
    )
