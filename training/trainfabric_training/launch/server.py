"""The launcher of our engine: forks the ranks of every epoch from a process that has imported it."""

from __future__ import annotations

from pathlib import Path

from trainfabric_node.launch import ForkServer
from trainfabric_training.launch.epoch import run_agent
from trainfabric_training.launch.wire import Start


class Launcher(ForkServer[Start]):
    """Listens on a unix socket and runs one epoch at a time.

    Args:
        path: The socket.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path, Start, run_agent)
