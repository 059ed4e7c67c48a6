"""What a controller does to the fleet and tells CloudWatch, on a thread of its own."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

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

    def release(self) -> None:
        """Asks for no node any more."""
        ...


class Hands:
    """Protects the members of the current epoch, and gives nodes back; tried again until it succeeds.

    Args:
        fleet: Opens the fleet; raises `TrainfabricError`.
        replaced: Called with the id of a node that was given back, and why.
        clock: Seconds, monotonic.
    """

    def __init__(
        self,
        fleet: Callable[[], FleetLike],
        replaced: Callable[[str, str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._open = fleet
        self._replaced = replaced
        self._clock = clock
        self._lock = threading.Lock()
        self._opening = threading.Lock()
        self._opened: FleetLike | None = None
        self._protected: tuple[str, ...] = ()
        self._protect_at: float | None = None
        self._to_replace: dict[str, str] = {}

    def protect(self, instance_ids: Iterable[str]) -> None:
        """From now on these are the members; asked for again now and then, for those that were not in service yet."""
        with self._lock:
            self._protected, self._protect_at = tuple(instance_ids), self._clock()

    def replace(self, instance_id: str, detail: str) -> None:
        """This node is to be given back."""
        with self._lock:
            self._to_replace[instance_id] = detail

    def work(self) -> None:
        """Does what is to be done; raises what it met last, when all was tried."""
        errors = [error for name, detail in self._wanted() if (error := self._replace(name, detail))]
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

    def release(self) -> None:
        """Asks for no node any more; raises `TrainfabricError`."""
        self._fleet().release()

    def _wanted(self) -> list[tuple[str, str]]:
        with self._lock:
            return list(self._to_replace.items())

    def _replace(self, instance_id: str, detail: str) -> TrainfabricError | None:
        try:
            done = self._fleet().replace(instance_id)
        except TrainfabricError as error:
            return error
        with self._lock:
            self._to_replace.pop(instance_id, None)
        _LOG.info("%s is given back: %s", instance_id, detail if done else "it is gone already")
        if done:
            self._replaced(instance_id, detail)
        return None

    def _fleet(self) -> FleetLike:
        with self._opening:  # it takes a while, in which nobody else must wait to say what is to be done
            if self._opened is None:
                self._opened = self._open()
            return self._opened
