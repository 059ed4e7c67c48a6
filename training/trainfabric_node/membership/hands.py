"""What a controller does to the fleet and tells CloudWatch, on a thread of its own."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from trainfabric_node.membership.actions import Replace
from trainfabric_plan.errors import TrainfabricError

_LOG = logging.getLogger(__name__)
_PROTECT_S = 60.0


class MemberLike(Protocol):
    """A node as its group has it."""

    @property
    def instance_id(self) -> str:
        """Of the node."""
        ...

    @property
    def leaving(self) -> bool:
        """Whether it is going, or gone."""
        ...


class FleetLike(Protocol):
    """What a controller needs of `jobs.fleet.Fleet`."""

    def members(self) -> Sequence[MemberLike]:
        """See `jobs.fleet.Fleet.members`."""
        ...

    def protect(self, instance_ids: Iterable[str]) -> None:
        """Keeps members from being chosen when a group shrinks; those that are not in service are left out."""
        ...

    def replace(self, instance_id: str) -> bool:
        """Terminates a member by its id, so that its group launches another; `False` if it is gone already."""
        ...

    def give_back(self, instance_id: str) -> bool:
        """Terminates a member by its id, and asks for one node less; `False` if it is gone already."""
        ...

    def restore(self, nodes: int, spares: int = 0) -> None:
        """Asks for as many nodes as the job was started with; after an error, those that are there stay."""
        ...

    def release(self) -> None:
        """Asks for no node any more."""
        ...


class Judge(Protocol):
    """Says whether a node is still to be given back, and hears what became of it."""

    def is_unwanted(self, instance_id: str) -> bool:
        """Whether the node is still to be given back; asked just before."""
        ...

    def is_gone(self, request: Replace, *, by_us: bool) -> None:
        """The node is given back, or was gone already."""
        ...

    def is_kept(self, request: Replace) -> None:
        """It could not be given back now."""
        ...


class Hands:
    """Protects the members of the current epoch, and gives nodes back; tried again until it succeeds.

    Args:
        fleet: Opens the fleet; raises `TrainfabricError`.
        judge: Is asked about each node before it is given back.
        clock: Seconds, monotonic.
    """

    def __init__(
        self, fleet: Callable[[], FleetLike], judge: Judge, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._open = fleet
        self._judge = judge
        self._clock = clock
        self._lock = threading.Lock()
        self._opening = threading.Lock()
        self._opened: FleetLike | None = None
        self._protected: tuple[str, ...] = ()
        self._protect_at: float | None = None
        self._to_replace: dict[str, Replace] = {}

    def protect(self, instance_ids: Iterable[str]) -> None:
        """From now on these are the members; asked for again now and then, for those that were not in service yet."""
        with self._lock:
            self._protected, self._protect_at = tuple(instance_ids), self._clock()

    def replace(self, request: Replace) -> None:
        """This node is to be given back."""
        with self._lock:
            self._to_replace[request.instance_id] = request

    def work(self) -> None:
        """Does what is to be done; raises what it met last, when all was tried."""
        errors = [error for request in self._wanted() if (error := self._replace(request))]
        with self._lock:
            due = self._protect_at is not None and self._clock() >= self._protect_at
            members = self._protected
        if due:
            self._fleet().protect(members)
            with self._lock:
                if self._protected == members:
                    self._protect_at = self._clock() + _PROTECT_S
        if errors:
            raise errors[-1]

    def there(self) -> list[str]:
        """Ids of the nodes that the fleet runs and is not about to end; raises `TrainfabricError`."""
        return [member.instance_id for member in self._fleet().members() if not member.leaving]

    def restore(self, nodes: int, spares: int) -> None:
        """Asks for as many nodes as the job was started with; raises `TrainfabricError`."""
        self._fleet().restore(nodes, spares)

    def release(self) -> None:
        """Asks for no node any more; raises `TrainfabricError`."""
        self._fleet().release()

    def _wanted(self) -> list[Replace]:
        with self._lock:
            return list(self._to_replace.values())

    def _replace(self, request: Replace) -> TrainfabricError | None:
        name = request.instance_id
        if not self._judge.is_unwanted(name):  # heard again while AWS did not answer, or this thread was busy
            self._forget(name)
            _LOG.info("%s is not given back for now: it was heard again, or is judged anew", name)
            return None
        try:
            done = self._fleet().replace(name) if request.another else self._fleet().give_back(name)
        except TrainfabricError as error:
            self._judge.is_kept(request)
            return error
        self._forget(name)
        _LOG.info("%s is given back: %s", name, request.detail if done else "it is gone already")
        self._judge.is_gone(request, by_us=done)
        return None

    def _forget(self, instance_id: str) -> None:
        with self._lock:
            self._to_replace.pop(instance_id, None)

    def _fleet(self) -> FleetLike:
        with self._opening:  # it takes a while, in which nobody else must wait to say what is to be done
            if self._opened is None:
                self._opened = self._open()
            return self._opened
