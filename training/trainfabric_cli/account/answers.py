"""Answers of AWS: a value, or why there is none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from trainfabric_node.jobs.aws import UNREADABLE

T = TypeVar("T")

_DENIED = frozenset({"AccessDenied", "AccessDeniedException", "UnauthorizedOperation"})
_UNREADABLE = (*UNREADABLE, AttributeError, LookupError, TypeError, ValueError)
"""What reading an answer ends with where something else than AWS gave it: no XML, a field that is not there."""


class NotAws(BotoCoreError):  # type: ignore[misc, unused-ignore]  # botocore has types only where stubs are installed
    """An answer that cannot be read, or has no request id: a proxy's page, a captive portal's."""

    fmt = "an answer that is not of AWS"


@dataclass(frozen=True)
class Unknown:
    """What AWS did not answer.

    Attributes:
        why: The reason in a few words: a missing permission, no answer, a refusal.
    """

    why: str

    def __str__(self) -> str:
        return f"unknown ({self.why})"


@contextmanager
def answer_of_aws() -> Iterator[None]:
    """Turns whatever reading an answer ends with into `NotAws`."""
    try:
        yield
    except _UNREADABLE as error:
        raise NotAws from error


def ask(action: str, call: Callable[[], T]) -> T | Unknown:
    """The answer of a call to AWS, or why there is none; nothing that AWS says ends the command."""
    try:
        with answer_of_aws():
            return call()
    except ClientError as error:
        code = str(error.response.get("Error", {}).get("Code", "error"))
        return Unknown(f"no permission for {action}" if code in _DENIED else f"{action}: {code}")
    except NotAws as error:
        return Unknown(f"{action}: {error}")
    except (BotoCoreError, OSError) as error:
        return Unknown(f"no answer to {action}: {type(error).__name__}")


def refuse_other_answers(parsed: dict[str, Any], **_: Any) -> None:
    """Handler of botocore's `after-call`: no page of a proxy is taken for an answer that says that there is nothing.

    An answer of AWS has a request id (botocore 1.44.8, parsers.ResponseParser.parse: "will always be present").

    Raises:
        NotAws: If the answer has no request id.
    """
    if not parsed.get("ResponseMetadata", {}).get("RequestId"):
        raise NotAws


def pages(client: Any, operation: str, key: str, **arguments: Any) -> list[Any]:
    """All pages of a list."""
    found = client.get_paginator(operation).paginate(**arguments)
    return [item for page in found for item in page.get(key, [])]
