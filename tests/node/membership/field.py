"""A controller's core among simulated nodes, with a clock of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.node.membership.said import beat, in_epoch
from tests.node.samples import plan, spec
from trainfabric_node.jobs import JobSpec
from trainfabric_node.jobs.records import StopRequest, now
from trainfabric_node.membership.actions import Action, Conclude, Form, Replace, Say
from trainfabric_node.membership.core import Core, Own
from trainfabric_node.membership.protocol import Answer, Beat, EpochOrder, EpochRecord, NodeEpoch, Notice
from trainfabric_node.membership.timing import FAST, Timing
from trainfabric_node.membership.watch import Past
from trainfabric_plan.contract import Event
from trainfabric_plan.layout import Layout

DEADLINE_S = 1800.0


@dataclass
class Simulated:
    """A node; what a test changes, its next beat says."""

    number: int
    ready: bool = True
    is_silent: bool = False
    incarnation: int = 0
    notice: Notice | None = None
    epoch: NodeEpoch | None = None
    answer: Answer | None = None
    changes: dict[str, Any] = field(default_factory=dict)
    sequence: int = 0

    @property
    def name(self) -> str:
        return f"i-{self.number}"

    def beat(self) -> Beat:
        self.sequence += 1
        return beat(
            self.number,
            **{
                "ready": self.ready,
                "sequence": self.sequence,
                "incarnation": f"s-{self.number}.{self.incarnation}",
                "notice": self.notice,
                "epoch": self.epoch,
                **self.changes,
            },
        )

    def take(self, answer: Answer) -> None:
        """As a supervisor does: begins what it is ordered, and ends its ranks when others go on."""
        self.answer = answer
        if answer.order:
            self.epoch = in_epoch(answer.order.record.number, "running")
        elif self.epoch and answer.epoch > self.epoch.number:
            self.epoch = None

    def says(self, state: str, step: int = 0, **more: Any) -> None:
        assert self.epoch is not None
        self.epoch = in_epoch(self.epoch.number, state, step, **more)

    def start_anew(self) -> None:
        """Its supervisor."""
        self.incarnation += 1
        self.epoch = None


class Field:
    """Time goes on in looks of 50 ms; nodes beat as their profile says; epochs are claimed at once."""

    def __init__(self, nodes: int = 3, timing: Timing = FAST, job: JobSpec | None = None, **own: Any) -> None:
        self.timing = timing
        self.job = job or spec(nodes, plan=small_plan(nodes))
        self.now = 100.0
        self.nodes = {number: Simulated(number) for number in range(1, nodes + 1)}
        self.actions: list[Action] = []
        self.records: list[EpochRecord] = []
        self.fleet_answers = True
        self.begin(**own)

    def begin(self, order: EpochOrder | None = None, past: Past | None = None, **own: Any) -> None:
        """A controller, the first or a later one."""
        values = {"incarnation": "c-1", "instance_id": "i-1", "began": self.now, "deadline": self.now + DEADLINE_S}
        self.core = Core(self.job, self.timing, Own(**{**values, **own}), order, past)
        self._next_beat = self.now

    def node(self, number: int) -> Simulated:
        return self.nodes.setdefault(number, Simulated(number))

    def pass_s(self, seconds: float) -> Field:
        end = self.now + seconds
        while self.now < end - 1e-6:
            self.now += 0.05
            self.look()
        return self

    def until(self, condition: Callable[[], object], within_s: float = 120.0) -> float:
        """Lets time go on until it holds; how long that took."""
        begun = self.now
        while not condition():
            assert self.now - begun < within_s, f"not within {within_s} s; {self.told()}"
            self.pass_s(0.05)
        return self.now - begun

    def look(self) -> None:
        if self.now >= self._next_beat - 1e-6:
            self._next_beat = self.now + self.timing.beat_s
            for node in self.nodes.values():
                if not node.is_silent:
                    self.say(node)
        for action in self.core.tick(self.now):
            self.actions.append(action)
            if isinstance(action, Form):
                self._claim(action)
            if isinstance(action, Replace) and self.fleet_answers:
                self.core.given_back(action.instance_id)

    def say(self, node: Simulated) -> Answer:
        said = node.beat()
        self.core.hear(said, self.now)
        answer = self.core.answer(said)
        node.take(answer)
        return answer

    def _claim(self, form: Form) -> None:
        record = epoch_record(self.job, len(self.records) + 1, nodes=form.nodes, plan=form.plan, detail=form.detail)
        self.records.append(record)
        self.core.formed(order_of(record))

    def stop(self) -> None:
        self.core.ask_to_stop(StopRequest(detail="by trainfabric job stop", requested=now()))

    # --- what was asked

    @property
    def epochs(self) -> list[list[str]]:
        """Node ids of each epoch."""
        return [[node.instance_id for node in record.nodes] for record in self.records]

    @property
    def conclusion(self) -> Conclude | None:
        return next((action for action in self.actions if isinstance(action, Conclude)), None)

    @property
    def replaced(self) -> list[tuple[str, str]]:
        return [(action.instance_id, action.detail) for action in self.actions if isinstance(action, Replace)]

    def told(self, *events: Event) -> list[dict[str, Any]]:
        """The events of these kinds, or all."""
        said = [action for action in self.actions if isinstance(action, Say)]
        return [{"event": one.event.value, **one.fields} for one in said if not events or one.event in events]


def small_plan(nodes: int) -> Any:
    """Of one replica for each node, whose batch divides by 1, 2 and 4."""
    return plan(nodes, layout=Layout(data=nodes, tensor=2), ranks_per_node=2)


def epoch_record(job: JobSpec, number: int, **changes: Any) -> EpochRecord:
    values: dict[str, Any] = {
        "job": job.job,
        "run": job.run,
        "number": number,
        "nonce": f"epoch-{number}",
        "nodes": (),
        "plan": job.plan,
        "detail": "",
        "controller": "c-1",
        "claimed": now(),
    }
    return EpochRecord(**{**values, **changes})


def order_of(record: EpochRecord) -> EpochOrder:
    return EpochOrder(record=record, resume=record.number > 1, rendezvous_host="10.0.0.1", rendezvous_port=29400)
