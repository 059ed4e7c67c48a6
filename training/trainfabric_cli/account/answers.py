"""Answers of AWS: a value, or why there is none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

T = TypeVar("T")

_DENIED = frozenset({"AccessDenied", "AccessDeniedException", "UnauthorizedOperation"})


@dataclass(frozen=True)
class Unknown:
    """What AWS did not answer.

    Attributes:
        why: The reason in a few words: a missing permission, no answer, a refusal.
    """

    why: str

    def __str__(self) -> str:
        return f"unknown ({self.why})"


def ask(action: str, call: Callable[[], T]) -> T | Unknown:
    """The answer of a call to AWS, or why there is none; nothing that AWS says ends the command."""
    try:
        return call()
    except ClientError as error:
        code = str(error.response.get("Error", {}).get("Code", "error"))
        return Unknown(f"no permission for {action}" if code in _DENIED else f"{action}: {code}")
    except BotoCoreError as error:
        return Unknown(f"no answer to {action}: {type(error).__name__}")


def pages(client: Any, operation: str, key: str, **arguments: Any) -> list[Any]:
    """All pages of a list."""
    found = client.get_paginator(operation).paginate(**arguments)
    return [item for page in found for item in page.get(key, [])]
