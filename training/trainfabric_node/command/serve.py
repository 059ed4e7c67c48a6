"""The unit of a node that runs somebody else's command in every epoch."""

from __future__ import annotations

from trainfabric_node.command.epoch import remove_containers, run_command
from trainfabric_node.command.start import CommandStart
from trainfabric_node.launch import ForkServer
from trainfabric_node.settings import NodeSettings
from trainfabric_plan.contract import LAUNCHER_SOCKET


def serve_commands(settings: NodeSettings) -> None:
    """Serves the supervisor until a signal ends the process; containers that an earlier one has left are removed."""
    remove_containers()
    settings.state.mkdir(parents=True, exist_ok=True)
    path = settings.state / LAUNCHER_SOCKET
    print(f"listening on {path}", flush=True)
    ForkServer(path, CommandStart, run_command, remove_containers).serve()
