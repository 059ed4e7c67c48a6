"""How far each node is, as the controller tells those who watch the run."""

from __future__ import annotations

from collections.abc import Iterable

from trainfabric_node.jobs.records import NodeState, NodeStatus, now
from trainfabric_node.membership.core import Core
from trainfabric_node.membership.roster import Node
from trainfabric_plan.contract import Role

_OPEN = [state for state in NodeState if state.ended or state is NodeState.JOINING]
_SILENT = "not heard any more"
_ENDS = {"done": NodeState.DONE, "stopped": NodeState.STOPPED, "failed": NodeState.FAILED}


def statuses(core: Core, moment: float, earlier: Iterable[NodeStatus] = (), own: str = "") -> list[NodeStatus]:
    """The status of every node that was ever heard in the run.

    Args:
        core: What is known.
        moment: A time of the core's clock.
        earlier: What an earlier controller told; who is not heard by this one is told as lost, or would stay
            `running` for ever. A node that boots says itself that it is joining.
        own: The controller's node, where it only controls and nobody else tells how it is.
    """
    found = [_status(core, node, moment) for node in core.roster]
    known = {own, *(node.beat.instance_id for node in core.roster)}
    silent = [one for one in earlier if one.state not in _OPEN and one.instance_id not in known]
    lost = {"state": NodeState.LOST, "detail": _SILENT, "updated": now()}
    gone = [one for one in silent if core.concluded or core.roster.is_dead(one.instance_id, moment)]
    return [*_controlling(core, own), *found] + [one.model_copy(update=lost) for one in gone]


def _controlling(core: Core, own: str) -> list[NodeStatus]:
    if not own:
        return []
    state = _ENDS[core.concluded.state] if core.concluded else NodeState.CONTROLLING
    return [NodeStatus(instance_id=own, role=Role.COORDINATOR, state=state, updated=now())]


def _status(core: Core, node: Node, moment: float) -> NodeStatus:
    state, detail = _state(core, node, moment)
    beat = node.beat
    return NodeStatus(instance_id=beat.instance_id, role=beat.role, state=state, detail=detail, updated=now())


def _state(core: Core, node: Node, moment: float) -> tuple[NodeState, str]:
    name, notice, course, conclusion = node.beat.instance_id, node.notice, core.course, core.concluded
    in_epoch = course is not None and course.member(name) is not None
    if node.lost or (node.replaced and core.roster.is_silent(name, moment)):
        return NodeState.LOST, notice.detail if notice and node.is_leaving else _SILENT
    if conclusion is not None:
        return _ENDS[conclusion.state] if in_epoch else NodeState.STOPPED, ""
    refusal = core.roster.refusal(node)
    if node.is_leaving or node.replaced or refusal:
        return NodeState.LEAVING, notice.detail if notice and node.is_leaving else refusal
    if course is not None and in_epoch and not core.is_waiting:
        return NodeState.RUNNING, f"epoch {course.record.number}"
    if node.beat.ready:
        return NodeState.SPARE, ""
    return NodeState.JOINING, ""
