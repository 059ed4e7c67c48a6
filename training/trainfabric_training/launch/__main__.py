"""The commands `python -m trainfabric_training.launch launcher` and `… rendezvous`, which systemd keeps running.

torch is imported by the commands themselves, when its variables are set.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from trainfabric_node.metadata import InstanceMetadata
from trainfabric_plan.contract import LAUNCHER_SOCKET, ExitStatus
from trainfabric_plan.errors import TrainfabricError
from trainfabric_training.settings import prepare_launcher, prepare_ranks, read_launch_settings


def run(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit status if it cannot start, and else not at all."""
    parser = argparse.ArgumentParser(prog="python -m trainfabric_training.launch", description="ranks of a node")
    commands = parser.add_subparsers(required=True)
    for command, call, words in (
        ("launcher", launcher, "import the engine and fork the ranks of every epoch, as the supervisor says"),
        ("rendezvous", rendezvous, "serve the store in which the ranks of all nodes meet"),
    ):
        commands.add_parser(command, help=words).set_defaults(call=call)
    try:
        parser.parse_args(arguments).call()
    except TrainfabricError as error:
        print(error, file=sys.stderr)
        return ExitStatus.USER_ERROR
    return ExitStatus.DONE


def launcher() -> None:
    """Serves `launcher.sock` in the state directory, once everything is imported."""
    settings = read_launch_settings()
    prepare_launcher()
    from trainfabric_training.engine.preload import cuda_is_there, preload
    from trainfabric_training.launch.server import Launcher

    prepare_ranks(cpu=not cuda_is_there())
    preload()
    settings.state.mkdir(parents=True, exist_ok=True)
    path = settings.state / LAUNCHER_SOCKET
    print(f"warm after {time.process_time():.1f} s of CPU time, listening on {path}", flush=True)
    Launcher(path).serve()


def rendezvous() -> None:
    """Serves the store on this node's own address."""
    settings = read_launch_settings()
    from trainfabric_training.launch.rendezvous import serve_store

    serve_store(InstanceMetadata(settings.metadata_endpoint).local_ipv4(), settings.rendezvous_port)


if __name__ == "__main__":
    sys.exit(run())
