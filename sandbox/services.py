"""Starts the services of a sandbox as child processes, and fills the nodes' S3 with what was deployed."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from sandbox.endpoints import ACCESS_KEY, ACCOUNT, REGION, SECRET_KEY, aws_variables, cdk_variables
from sandbox.processes import Children, local_environment, wait_until
from sandbox.s3 import s3_client, seaweedfs

__all__ = [
    "ACCESS_KEY",
    "ACCOUNT",
    "REGION",
    "SECRET_KEY",
    "aws_variables",
    "cdk_variables",
    "embedded_aws",
    "mirror_buckets",
    "seaweedfs",
]

START_TIMEOUT_S = 60.0


def embedded_aws(children: Children, *, log: Path, port: int = 0) -> str:
    """Start `python -m sandbox aws` and wait until it answers; returns its endpoint.

    Raises:
        Unreachable: If it does not come up; the text ends with its log.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    ready = log.parent / f"{log.stem}.{time.monotonic_ns()}.json"
    command = [sys.executable, "-m", "sandbox", "aws", "--port", str(port), "--ready-file", str(ready)]
    root = Path(__file__).parent.parent
    # moto reads credentials and endpoints like any client: none of a real account may reach it
    child = children.start(
        "aws", command, log=log, environment=local_environment(**aws_variables("http://localhost:1")), directory=root
    )
    wait_until(ready.exists, timeout_s=START_TIMEOUT_S, what="the embedded AWS", child=child)
    endpoint: str = json.loads(ready.read_text())["endpoint"]
    ready.unlink()
    return endpoint


def mirror_buckets(from_endpoint: str, to_endpoint: str) -> dict[str, int]:
    """Create every bucket of one S3 server in another and copy its objects; returns objects copied by bucket.

    For the nodes S3 is SeaweedFS, which checks checksums and conditions; the buckets were deployed to moto.
    """
    source, target = s3_client(from_endpoint), s3_client(to_endpoint)
    there = {bucket["Name"] for bucket in target.list_buckets()["Buckets"]}
    copied = {}
    for bucket in (bucket["Name"] for bucket in source.list_buckets()["Buckets"]):
        if bucket not in there:
            target.create_bucket(Bucket=bucket)
        copied[bucket] = _copy_objects(source, target, bucket)
    return copied


def _copy_objects(source: Any, target: Any, bucket: str) -> int:
    count = 0
    for page in source.get_paginator("list_objects_v2").paginate(Bucket=bucket):
        for item in page.get("Contents", []):
            body = source.get_object(Bucket=bucket, Key=item["Key"])["Body"].read()
            target.put_object(Bucket=bucket, Key=item["Key"], Body=body)
            count += 1
    return count
