"""The thread that watches for EC2's notices."""

from __future__ import annotations

from collections.abc import Callable

from trainfabric_node.agent.bell import Bell
from trainfabric_node.agent.host import attempt
from trainfabric_node.membership.protocol import Notice, most_urgent
from trainfabric_node.metadata import InstanceMetadata


def notices_of(metadata: InstanceMetadata) -> list[Notice]:
    """What EC2 says about this node now.

    Raises:
        Unreachable: If the metadata service does not answer.
    """
    found, action = [], metadata.spot_action()
    if action is not None:
        found.append(Notice(kind="spot", detail=f"{action.action} at {action.time}"))
    advised = metadata.rebalance()
    if advised is not None:
        found.append(Notice(kind="rebalance", detail=f"recommended at {advised}"))
    return found


class NoticeWatch:
    """Looks for notices at intervals, and keeps the most urgent.

    Args:
        notices: What EC2 says; raises `Unreachable`.
        every_s: Seconds between two looks.
        ring: Called when there is another notice than before.
    """

    def __init__(self, notices: Callable[[], list[Notice]], every_s: float, ring: Callable[[], None]) -> None:
        self._notices = notices
        self._every_s = every_s
        self._ring = ring
        self._bell = Bell()
        self._stopped = False
        self.notice: Notice | None = None

    def run(self) -> None:
        """Looks until `stop`."""
        while not self._stopped:
            self.look()
            self._bell.wait(self._every_s)

    def stop(self) -> None:
        """Lets `run` return."""
        self._stopped = True
        self._bell.ring()

    def look(self) -> None:
        """Takes in what EC2 says now; a service that does not answer takes nothing back."""
        found = most_urgent(self.notice, *(attempt(self._notices) or []))
        if found != self.notice:
            self.notice = found
            self._ring()
