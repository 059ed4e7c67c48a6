"""What happened to a run, in words and in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

from trainfabric_node.jobs.records import JobSpec, Outcome, StopRequest
from trainfabric_plan.contract import Event

EventLine = dict[str, Any]

_STACK_FRAMES = 3
_DETAIL_CHARACTERS = 300


@dataclass(frozen=True)
class _Said:
    time: datetime
    text: str


def tell(
    spec: JobSpec,
    events: list[EventLine],
    stop: StopRequest | None = None,
    outcome: Outcome | None = None,
    *,
    summed_up: bool = True,
) -> list[str]:
    """One line for each thing that happened: a time of day in UTC, with the date where it changes, and a sentence.

    Args:
        spec: The run.
        events: Its events by time, see `contract.Event`.
        stop: That it was asked to stop.
        outcome: How it ended.
        summed_up: Whether what comes again and again is one line, which grows as it comes.
    """
    said = [_Said(spec.created, _start(spec)), *_of_events(spec, events, summed_up=summed_up)]
    if stop:
        said.append(_Said(stop.requested, f"asked to stop {stop.detail}".rstrip()))
    if outcome:
        said.append(_Said(outcome.ended, _end(outcome)))
    return list(_dated(sorted(said, key=lambda one: one.time)))


def _dated(said: Iterable[_Said]) -> Iterator[str]:
    day = None
    for one in said:
        time = one.time.astimezone(UTC)
        yield f"{time:%Y-%m-%d %H:%M:%S} {one.text}" if time.date() != day else f"{time:%H:%M:%S} {one.text}"
        day = time.date()


def _start(spec: JobSpec) -> str:
    nodes = _counted(spec.plan.nodes, "node") + (f" and {_counted(spec.spares, 'spare')}" if spec.spares else "")
    resumed = f"step {spec.from_step}" if spec.from_step else "the newest checkpoint"
    how = f", from {resumed}" if spec.resume else ""
    return f"{spec.job} (run {spec.run}) asks for {nodes}, {spec.plan.shape}{how}"


def _end(outcome: Outcome) -> str:
    at = "" if outcome.step is None else f" at step {outcome.step}"
    return f"the run has ended: {outcome.state}{at}" + (f": {_short(outcome.detail)}" if outcome.detail else "")


def _of_events(spec: JobSpec, events: list[EventLine], *, summed_up: bool) -> Iterator[_Said]:
    kept = [event for event in events if not _is_an_echo(event, events)]
    for kind, group in groupby(kept, key=lambda event: event["event"]):
        alike = list(group)
        if summed_up and kind in _SUMMARIES and len(alike) > 1:
            yield _Said(_time(alike[-1]), _SUMMARIES[kind](alike))
        else:
            yield from (_Said(_time(event), _sentence(spec, event)) for event in alike)


def _is_an_echo(event: EventLine, events: list[EventLine]) -> bool:
    """Whether another event of the same epoch tells it as well, and more: that all left tells of the save before."""
    of_epoch = [other for other in events if other.get("epoch") == event.get("epoch")]
    if event["event"] == Event.COMMIT:
        ends = (Event.STOP, Event.DONE)
        return any(other["event"] in ends and other["step"] == event["step"] for other in of_epoch)
    if event["event"] == Event.EPOCH_ENDED:
        told = {"resume": Event.STOP, "done": Event.DONE}.get(event["state"])
        return any(other["event"] == told for other in of_epoch)
    return False


def _sentence(spec: JobSpec, event: EventLine) -> str:
    write = _SENTENCES.get(event["event"])
    return write(spec, event) if write else _plain(event)


def _epoch(spec: JobSpec, event: EventLine) -> str:
    nodes = event["nodes"]
    count = len(nodes) if isinstance(nodes, list) else int(nodes)
    on = _counted(count, "node") if count == spec.plan.nodes else f"{count} of {_counted(spec.plan.nodes, 'node')}"
    return f"epoch {event['epoch']}: {on} train, {event['layout']}{_because(event)}"


def _epoch_ended(spec: JobSpec, event: EventLine) -> str:
    how = {"resume": "ended: its ranks saved and left", "failed": "failed", "done": "is done"}
    return f"epoch {event['epoch']} {how.get(event['state'], event['state'])}{_because(event)}"


def _drain(spec: JobSpec, event: EventLine) -> str:
    when = "leave at the next checkpoint" if event["at"] == "checkpoint" else "save and leave"
    return f"all ranks are asked to {when}{_because(event)}"


def _stalled(spec: JobSpec, event: EventLine) -> str:
    frames = innermost(event.get("stack", ""))
    stack = f"; stack: {' < '.join(frames)}" if frames else ""
    return f"{event['node']}: rank {event['rank']} stopped moving{_because(event)}{stack}"


def _wait(spec: JobSpec, event: EventLine) -> str:
    until = event.get("until")
    how_long = f"until {datetime.fromisoformat(until).astimezone(UTC):%H:%M:%S}" if until else "for as long as it takes"
    return f"too few nodes{_because(event)}; waiting {how_long}"


def _commit(spec: JobSpec, event: EventLine) -> str:
    took = f" in {event['seconds']:.1f} s" if "seconds" in event else ""
    return f"the checkpoint of step {event['step']} is committed{took}"


def _started(spec: JobSpec, event: EventLine) -> str:
    return f"epoch {event['epoch']}: {_counted(event['ranks'], 'rank')} are loaded, on {event['device']}"


_SENTENCES: dict[str, Callable[[JobSpec, EventLine], str]] = {
    Event.NODE_JOINED: lambda _, event: f"{event['node']} is up and warm ({_where(event)}){_because(event)}",
    Event.NODE_LOST: lambda _, event: f"{event['node']} is lost{_because(event)}",
    Event.NODE_REFUSED: lambda _, event: f"{event['node']} is not taken in{_because(event)}",
    Event.NODE_REPLACED: lambda _, event: f"{event['node']} is given back, the fleet launches another{_because(event)}",
    Event.SPOT_NOTICE: lambda _, event: f"{event['node']} got a spot notice{_because(event)}",
    Event.REBALANCE: lambda _, event: f"{event['node']} is likelier to be taken back, says EC2",
    Event.DRAIN: _drain,
    Event.EPOCH: _epoch,
    Event.EPOCH_ENDED: _epoch_ended,
    Event.RANK_STALLED: _stalled,
    Event.WAIT: _wait,
    Event.CONTROLLER: lambda _, event: f"the controller on {event['node']} is in charge{_because(event)}",
    Event.RELEASE: lambda _, event: f"the nodes are given back{_because(event)}",
    Event.START: _started,
    Event.RESUME: lambda _, event: f"all ranks go on from the checkpoint of step {event['step']}",
    Event.COMMIT: _commit,
    Event.STOP: lambda _, event: f"all ranks saved step {event['step']} and left",
    Event.DONE: lambda _, event: f"the last step, {event['step']}, is committed",
}


def _where(event: EventLine) -> str:
    return f"{event['role']}, {event['address']}"


def _commits(alike: list[EventLine]) -> str:
    return f"the checkpoints of steps {alike[0]['step']} to {alike[-1]['step']} are committed, {len(alike)} of them"


def _joined(alike: list[EventLine]) -> str:
    return f"{len(alike)} nodes are up and warm: {', '.join(event['node'] for event in alike)}"


_SUMMARIES: dict[str, Callable[[list[EventLine]], str]] = {Event.COMMIT: _commits, Event.NODE_JOINED: _joined}
"""Of what comes again and again with nothing between."""


def innermost(stack: str, frames: int = _STACK_FRAMES) -> list[str]:
    """The innermost frames of a stack as py-spy prints it: `function (file:line)`, innermost first.

    Of several threads, the main one; lines that are none of py-spy's are frames as they are.
    """
    lines = [line.strip() for line in stack.splitlines() if line.strip()]
    main = next((number for number, line in enumerate(lines) if _is_thread(line) and "MainThread" in line), None)
    found: list[str] = []
    for line in lines[0 if main is None else main + 1 :]:
        if _is_thread(line) and found:
            break
        if not _is_thread(line) and not line.startswith(("Process ", "Python v")):
            found.append(line)
    return found[:frames]


def _is_thread(line: str) -> bool:
    return line.startswith("Thread ")


def _because(event: EventLine) -> str:
    detail = _short(str(event.get("detail") or ""))
    return f": {detail}" if detail else ""


def _plain(event: EventLine) -> str:
    """An event that this version has no words for."""
    more = ", ".join(f"{key} {value}" for key, value in event.items() if key not in ("event", "time"))
    return f"{event['event']}: {more}" if more else str(event["event"])


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _DETAIL_CHARACTERS else f"{line[: _DETAIL_CHARACTERS - 1]}…"


def _counted(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def _time(event: EventLine) -> datetime:
    return datetime.fromisoformat(event["time"])
