"""AWS's errors in this package's words."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
    EndpointConnectionError,
    NoCredentialsError,
    NoRegionError,
    PartialCredentialsError,
    ProfileNotFound,
)
from botocore.parsers import ResponseParserError
from urllib3.exceptions import HTTPError

from trainfabric_plan.errors import Unreachable

_NO_CREDENTIALS = (NoCredentialsError, PartialCredentialsError, CredentialRetrievalError, ProfileNotFound)

UNREADABLE = (ResponseParserError, HTTPError)
"""What botocore raises outside its own `BotoCoreError` and `ClientError` while it reads an answer: a proxy's HTML."""


def aws_client(service: str, region: str | None, where: str) -> Any:
    """A client of a service; gives up after a few seconds where nothing answers.

    Raises:
        Unreachable: If neither the arguments nor the configuration name a region.
    """
    config = Config(retries={"mode": "standard", "max_attempts": 3}, connect_timeout=5, read_timeout=30)
    with aws_errors(where, service):
        return boto3.session.Session(region_name=region).client(service, config=config)


@contextlib.contextmanager
def aws_errors(where: str, service: str) -> Iterator[None]:
    """Turns what botocore raises into `Unreachable` with a remedy."""
    try:
        yield
    except NoRegionError:
        remedy = "set AWS_REGION, or give the region of the environment"
        raise Unreachable(f"{where}: AWS region must be given, got none; {remedy}") from None
    except _NO_CREDENTIALS as error:
        got = "none" if isinstance(error, NoCredentialsError) else _one_line(error)
        remedy = "set AWS_PROFILE or run aws configure; on a node, check its instance profile"
        raise Unreachable(f"{where}: AWS credentials must be given, got {got}; {remedy}") from None
    except EndpointConnectionError as error:
        remedy = "the embedded AWS is not running (make demo starts it), or AWS_ENDPOINT_URL or the network is wrong"
        raise Unreachable(
            f"{where}: {service} must answer, got no connection to {error.kwargs['endpoint_url']}; {remedy}"
        ) from None
    except ClientError as error:
        remedy = "check the credentials and their permissions"
        raise Unreachable(f"{where}: {service} must accept the request, got {_one_line(error)}; {remedy}") from error
    except (BotoCoreError, *UNREADABLE) as error:
        remedy = "check the network and AWS_ENDPOINT_URL"
        raise Unreachable(f"{where}: {service} must answer, got {_one_line(error)}; {remedy}") from error


def error_code(error: ClientError) -> str:
    """The code of an error that a service answered with."""
    return str(error.response.get("Error", {}).get("Code", ""))


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
