"""The command `python -m trainfabric_node agent`, which the systemd unit runs on every node."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence

from trainfabric_node.agent import run_agent
from trainfabric_node.settings import read_settings
from trainfabric_plan.contract import ExitStatus
from trainfabric_plan.errors import TrainfabricError


def run(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit status."""
    parser = argparse.ArgumentParser(prog="python -m trainfabric_node", description="what runs on a node")
    commands = parser.add_subparsers(required=True)
    commands.add_parser("agent", help="take part in the jobs of this node's environment until told to leave")
    parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stdout)
    logging.getLogger("botocore").setLevel(logging.WARNING)
    try:
        run_agent(read_settings())
    except TrainfabricError as error:
        print(error, file=sys.stderr)
        return ExitStatus.USER_ERROR
    return ExitStatus.DONE


if __name__ == "__main__":
    sys.exit(run())
