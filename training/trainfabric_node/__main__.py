"""The commands of `python -m trainfabric_node`, each of which a systemd unit runs on a node."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence

from trainfabric_node.settings import NodeSettings, read_settings
from trainfabric_plan.contract import ExitStatus
from trainfabric_plan.errors import Refused, TrainfabricError


def run(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; returns its exit status."""
    parser = argparse.ArgumentParser(prog="python -m trainfabric_node", description="what runs on a node")
    commands = parser.add_subparsers(required=True)
    agent = commands.add_parser("agent", help="take part in the jobs of this node's environment until told to leave")
    agent.set_defaults(start=_agent)
    controller = commands.add_parser("controller", help="say which nodes train, and when; on the coordinator")
    controller.set_defaults(start=_controller)
    command = commands.add_parser("command", help="run somebody else's command in every epoch, as the supervisor says")
    command.set_defaults(start=_command)
    chosen = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stdout)
    logging.getLogger("botocore").setLevel(logging.WARNING)
    try:
        chosen.start(read_settings())
    except TrainfabricError as error:
        print(error, file=sys.stderr)
        return ExitStatus.FAILED if isinstance(error, Refused) else ExitStatus.USER_ERROR
    return ExitStatus.DONE


def _agent(settings: NodeSettings) -> None:
    from trainfabric_node.agent import run_agent

    run_agent(settings)


def _controller(settings: NodeSettings) -> None:
    from trainfabric_node.membership.controller import run_controller

    run_controller(settings)


def _command(settings: NodeSettings) -> None:
    from trainfabric_node.command.serve import serve_commands

    serve_commands(settings)


if __name__ == "__main__":
    sys.exit(run())
