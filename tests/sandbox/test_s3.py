from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from sandbox.s3 import s3_client, seaweedfs_server
from sandbox.services import mirror_buckets
from tests.sandbox.conftest import Aws


def status(call: Callable[..., Any], **arguments: Any) -> int:
    with pytest.raises(ClientError) as failure:
        call(**arguments)
    return int(failure.value.response["ResponseMetadata"]["HTTPStatusCode"])


def test_a_put_on_condition_does_not_overwrite(s3_endpoint: str, new_name: Callable[[str], str]) -> None:
    s3, bucket = s3_client(s3_endpoint), new_name("bucket")
    s3.create_bucket(Bucket=bucket)
    s3.put_object(Bucket=bucket, Key="k", Body=b"first", IfNoneMatch="*")

    assert status(s3.put_object, Bucket=bucket, Key="k", Body=b"second", IfNoneMatch="*") == 412
    assert s3.get_object(Bucket=bucket, Key="k")["Body"].read() == b"first"


def test_a_wrong_checksum_is_refused(s3_endpoint: str, new_name: Callable[[str], str]) -> None:
    s3, bucket = s3_client(s3_endpoint), new_name("bucket")
    s3.create_bucket(Bucket=bucket)
    wrong = base64.b64encode(b"\0\0\0\1").decode()
    assert status(s3.put_object, Bucket=bucket, Key="k", Body=b"body", ChecksumCRC32C=wrong) == 400


def test_other_credentials_are_refused(s3_endpoint: str) -> None:
    stranger = s3_client(s3_endpoint)
    stranger._request_signer._credentials.access_key = "somebody"
    assert status(stranger.list_buckets) == 403


def test_the_deployed_buckets_and_their_objects_are_mirrored(
    aws: Aws, s3_endpoint: str, new_name: Callable[[str], str]
) -> None:
    # given a bucket in moto
    bucket, key = new_name("assets"), "folder/code.zip"
    aws.client("s3").create_bucket(Bucket=bucket)
    aws.client("s3").put_object(Bucket=bucket, Key=key, Body=b"code")
    # when it is mirrored, twice
    first = mirror_buckets(aws.endpoint, s3_endpoint)
    second = mirror_buckets(aws.endpoint, s3_endpoint)
    # then
    assert first[bucket] == second[bucket] == 1
    assert s3_client(s3_endpoint).get_object(Bucket=bucket, Key=key)["Body"].read() == b"code"


def test_the_server_is_gone_with_its_sockets_when_the_block_ends(tmp_path: Path) -> None:
    with seaweedfs_server(tmp_path) as endpoint:
        s3_client(endpoint).create_bucket(Bucket="bucket")
        sockets = [
            Path(line.rpartition(" ")[2])
            for line in (tmp_path / "seaweedfs.log").read_text().splitlines()
            if "Unix socket" in line
        ]
        assert all(socket.exists() for socket in sockets)

    with pytest.raises(EndpointConnectionError):
        s3_client(endpoint).list_buckets()
    assert sockets
    assert not any(socket.exists() for socket in sockets)
