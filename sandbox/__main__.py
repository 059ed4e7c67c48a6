"""`python -m sandbox aws|nodes|mirror|up`: the parts of the sandbox, each in the foreground."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

from sandbox.processes import Children, exit_on_sigterm
from trainfabric_plan.errors import EXIT_USER_ERROR, TrainfabricError, mistake


def main(arguments: list[str] | None = None) -> int:
    """Run the subcommand; 2 for what the user can mend, 130 for Ctrl-C."""
    chosen = _parser().parse_args(arguments)
    exit_on_sigterm()
    try:
        chosen.run(chosen)
    except TrainfabricError as error:
        print(error, file=sys.stderr)
        return EXIT_USER_ERROR
    except KeyboardInterrupt:
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m sandbox", description=__doc__)
    commands = parser.add_subparsers(required=True)
    aws = commands.add_parser("aws", help="the embedded AWS (moto)")
    aws.add_argument("--port", type=int, default=0, help="TCP port on localhost; a free one if not given")
    aws.add_argument("--ready-file", type=Path, help="gets JSON with the endpoint once it answers")
    aws.set_defaults(run=_aws)
    nodes = commands.add_parser("nodes", help="local nodes for the running instances of a deployed environment")
    nodes.add_argument("--environment", required=True, help="name of the deployed environment")
    nodes.add_argument("--state", type=Path, required=True, help="directory of the nodes' files and logs")
    nodes.add_argument(
        "--network",
        choices=("loopback", "namespaces"),
        default="loopback",
        help="namespaces: every node has a link of its own, which a fault file can take away; needs Linux and ip",
    )
    nodes.set_defaults(run=_nodes)
    mirror = commands.add_parser("mirror", help="give the nodes' S3 (AWS_ENDPOINT_URL_S3) the deployed buckets")
    mirror.set_defaults(run=_mirror)
    up = commands.add_parser("up", help="the embedded AWS and SeaweedFS, for a cdk deploy by hand")
    up.add_argument("--directory", type=Path, required=True, help="directory of logs and of SeaweedFS's data")
    up.add_argument("--port", type=int, default=0, help="TCP port of the embedded AWS; a free one if not given")
    up.set_defaults(run=_up)
    return parser


def _aws(chosen: argparse.Namespace) -> None:
    from sandbox.aws.server import serve  # moto takes seconds to import

    serve(chosen.port, chosen.ready_file)


def _nodes(chosen: argparse.Namespace) -> None:
    from sandbox.nodes import run_nodes

    run_nodes(chosen.environment, chosen.state, chosen.network)


def _mirror(chosen: argparse.Namespace) -> None:
    from sandbox.services import mirror_buckets

    names = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3")
    missing = [name for name in names if name not in os.environ]
    if missing:
        raise mistake("environment variables", missing[0], "set to what `python -m sandbox up` printed", "nothing")
    for bucket, objects in mirror_buckets(*(os.environ[name] for name in names)).items():
        print(f"{bucket}: {objects} objects")


def _up(chosen: argparse.Namespace) -> None:
    from sandbox.services import aws_variables, cdk_variables, embedded_aws, seaweedfs

    directory = chosen.directory.resolve()
    with Children() as children:
        endpoint = embedded_aws(children, log=directory / "aws.log", port=chosen.port)
        s3_endpoint = seaweedfs(children, directory / "s3", log=directory / "s3.log")
        print("# the CDK deploys to moto's S3; set AWS_ENDPOINT_URL_S3 after the deploy, for nodes and jobs")
        for name, value in {**aws_variables(endpoint), **cdk_variables()}.items():
            print(f"export {name}={value}")
        print(f"# export AWS_ENDPOINT_URL_S3={s3_endpoint}", flush=True)
        while True:
            time.sleep(3600)


if __name__ == "__main__":
    sys.exit(main())
