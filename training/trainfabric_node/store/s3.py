"""A store in an S3 bucket.

Conditional writes: S3 answers 412 if the key is taken, which may be one's own retried put that landed, and 409 to
racing ones (S3 User Guide, "Conditional writes"). The endpoint comes from AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL,
which botocore reads by itself.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import time
from collections.abc import Iterator
from typing import Any

import botocore.loaders
import botocore.session
import google_crc32c
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    IncompleteReadError,
    NoCredentialsError,
    PartialCredentialsError,
    ReadTimeoutError,
    ResponseStreamingError,
)

from trainfabric_node.store.protocol import ObjectMissing
from trainfabric_plan.errors import NotFound, TrainfabricError, Unreachable

_CONDITIONAL_ATTEMPTS = 12
_READ_ATTEMPTS = 3
_MISSING_OBJECT = {"NoSuchKey", "404", "NotFound"}
_TAKEN = {"PreconditionFailed", "412"}
_CONFLICT = {"ConditionalRequestConflict", "OperationAborted", "409"}
_BAD_RANGE = {"InvalidRange", "416"}


class S3Store:
    """Objects of one bucket below one key prefix; every put carries a CRC32C that S3 checks and keeps."""

    def __init__(self, bucket: str, prefix: str) -> None:
        self._bucket = bucket
        self._prefix = prefix if not prefix or prefix.endswith("/") else f"{prefix}/"
        with self._errors():
            self._client: Any = _session().create_client("s3", config=_config())

    @property
    def uri(self) -> str:
        """`s3://bucket/prefix/`."""
        return f"s3://{self._bucket}/{self._prefix}"

    def put(self, key: str, data: bytes) -> None:
        """See `Store.put`."""
        with self._errors(key):
            self._put(key, data)

    def put_if_absent(self, key: str, data: bytes) -> bool:
        """See `Store.put_if_absent`."""
        for attempt in range(_CONDITIONAL_ATTEMPTS):
            with self._errors(key):
                if self._try_put(key, data):
                    return True
            with contextlib.suppress(ObjectMissing):
                return self.get(key) == data
            time.sleep(min(0.05 * 2**attempt, 1.0))
        raise Unreachable(f"{self.uri}: {key} must be written or refused, got conflicts only; try again later")

    def get(self, key: str) -> bytes:
        """See `Store.get`."""
        with self._errors(key):
            return self._read(Key=self._prefix + key)

    def get_range(self, key: str, start: int, length: int) -> bytes:
        """See `Store.get_range`."""
        if length <= 0:
            return b""
        try:
            with self._errors(key):
                return self._read(Key=self._prefix + key, Range=f"bytes={start}-{start + length - 1}")
        except _BeyondEnd:
            return b""

    def size(self, key: str) -> int:
        """See `Store.size`."""
        with self._errors(key):
            return int(self._client.head_object(Bucket=self._bucket, Key=self._prefix + key)["ContentLength"])

    def list(self, prefix: str) -> list[str]:
        """See `Store.list`."""
        pages = self._client.get_paginator("list_objects_v2")
        with self._errors():
            found = [
                str(entry["Key"])[len(self._prefix) :]
                for page in pages.paginate(Bucket=self._bucket, Prefix=self._prefix + prefix)
                for entry in page.get("Contents", [])
            ]
        return sorted(key for key in found if not key.endswith("/"))

    def delete(self, key: str) -> None:
        """See `Store.delete`."""
        with self._errors(key):
            self._client.delete_object(Bucket=self._bucket, Key=self._prefix + key)

    def _put(self, key: str, data: bytes, **conditions: str) -> None:
        checksum = base64.b64encode(google_crc32c.value(data).to_bytes(4, "big")).decode()
        self._client.put_object(
            Bucket=self._bucket, Key=self._prefix + key, Body=data, ChecksumCRC32C=checksum, **conditions
        )

    def _try_put(self, key: str, data: bytes) -> bool:
        try:
            self._put(key, data, IfNoneMatch="*")
        except ClientError as error:
            if _codes(error) & (_TAKEN | _CONFLICT):
                return False
            raise
        return True

    def _read(self, **request: Any) -> bytes:
        """The body; botocore retries the request by itself, but not a body that breaks off."""
        for attempt in range(1, _READ_ATTEMPTS + 1):
            try:
                response = self._client.get_object(Bucket=self._bucket, **request)
                with contextlib.closing(response["Body"]) as body:
                    return bytes(body.read())
            except (ResponseStreamingError, IncompleteReadError, ReadTimeoutError):
                if attempt == _READ_ATTEMPTS:
                    raise
        raise AssertionError("the last attempt returns or raises")

    @contextlib.contextmanager
    def _errors(self, key: str | None = None) -> Iterator[None]:
        try:
            yield
        except ClientError as error:
            raise self._translated(error, key) from error
        except (NoCredentialsError, PartialCredentialsError):
            remedy = "set AWS_PROFILE or run aws configure; on a node, check its instance profile"
            raise Unreachable(f"{self.uri}: AWS credentials must be given, got none; {remedy}") from None
        except BotoCoreError as error:
            remedy = "check the network and AWS_ENDPOINT_URL_S3"
            raise Unreachable(f"{self.uri}: S3 must answer, got {_one_line(error)}; {remedy}") from error

    def _translated(self, error: ClientError, key: str | None) -> TrainfabricError:
        codes = _codes(error)
        if "NoSuchBucket" in codes:
            remedy = "deploy the environment, or correct the name"
            return NotFound(f"{self.uri}: bucket must be an existing one, got {self._bucket}; {remedy}")
        if key is not None and codes & _MISSING_OBJECT:
            return ObjectMissing(self.uri, key)
        if codes & _BAD_RANGE:
            return _BeyondEnd(f"{self.uri}: range must lie inside {key}")
        failed = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0) >= 500
        remedy = "try again later" if failed else "check the credentials and the bucket's policy"
        return Unreachable(f"{self.uri}: S3 must accept the request, got {_one_line(error)}; {remedy}")


class _BeyondEnd(TrainfabricError):
    """The range starts behind the object's end."""


def preload() -> None:
    """Reads what botocore knows about S3, so that clients in forked processes need not: 0.1 s of CPU time each."""
    nobody = "none"  # keys that are given are not looked for
    _session().create_client(
        "s3", region_name="us-east-1", config=_config(), aws_access_key_id=nobody, aws_secret_access_key=nobody
    )


def _session() -> botocore.session.Session:
    """A session of its own, as clients in several threads need, that shares what botocore has read already."""
    session = botocore.session.get_session()
    session.register_component("data_loader", _descriptions())
    return session


@functools.cache
def _descriptions() -> botocore.loaders.Loader:
    return botocore.loaders.create_loader(botocore.session.get_session().get_config_variable("data_path"))


def _config() -> Config:
    return Config(
        retries={"mode": "standard", "max_attempts": 5}, connect_timeout=5, read_timeout=60, max_pool_connections=32
    )


def _codes(error: ClientError) -> set[str]:
    response = error.response
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    return {str(response.get("Error", {}).get("Code")), str(status)}


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
