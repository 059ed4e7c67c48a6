"""What a construct says about a property that cannot work."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeGuard

from aws_cdk import Token
from constructs import IConstruct

from trainfabric_plan.errors import InvalidInput, Mistake, TrainfabricError
from trainfabric_plan.stand_ins import is_stand_in


class PropertyError(InvalidInput):
    """Properties of a construct that cannot work, each with the path of the construct.

    A `ValueError` and a `TrainfabricError`. Values that CDK knows only at deploy time (tokens) are never judged.
    """


def property_error(
    scope: IConstruct, name: str, rule: str, got: object = None, remedy: str | None = None
) -> PropertyError:
    """A `PropertyError` about one property of `scope`."""
    shown = None if got is None else str(got)
    return PropertyError([Mistake(where=scope.node.path, name=name, rule=rule, got=shown, remedy=remedy)])


def refuse(mistakes: Iterable[Mistake]) -> None:
    """Raise all mistakes together, if there are any.

    Raises:
        PropertyError: With every mistake.
    """
    found = tuple(mistakes)
    if found:
        raise PropertyError(found)


def is_known(*values: Any) -> bool:
    """Whether no value is a token, or stands in for one that a lookup finds later: only then can it be judged."""
    return not any(is_stand_in(value) or (_may_be_token(value) and Token.is_unresolved(value)) for value in values)


def _may_be_token(value: Any) -> bool:
    """What the CDK has to be asked about: a question to the process behind it takes a millisecond.

    A token's text has `Token[` in it, its list is that of one such text, and its number lies beyond -1e288
    (core/lib/private/encoding.js of aws-cdk-lib 2.262, 2.269 and 2.275, read 2026-12). No token is infinite, and that
    process dies when it is sent infinity: its protocol is JSON.
    """
    match value:
        case None | bool():
            return False
        case str():
            return "Token[" in value
        case int() | float():
            return math.isfinite(value) and value < -1e288
        case list():
            return len(value) == 1 and isinstance(value[0], str) and "Token[" in value[0]
        case _:
            return True


def is_whole_number(value: object) -> TypeGuard[int]:
    """Whether a known value is an `int`, which Python also says of `True`."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: object) -> TypeGuard[float]:
    """Whether a known value is an `int` or a `float`."""
    return is_whole_number(value) or isinstance(value, float)


@contextmanager
def at_construct(scope: IConstruct) -> Iterator[None]:
    """Errors of pure code inside the block leave it as `PropertyError` with the construct's path.

    Raises:
        PropertyError: Instead of any `TrainfabricError` raised inside.
    """
    try:
        yield
    except PropertyError:
        raise
    except TrainfabricError as error:
        raise _Reworded(scope, error) from error


class _Reworded(PropertyError):
    """An error of pure code, told with the path of the construct that asked."""

    def __init__(self, scope: IConstruct, error: TrainfabricError) -> None:
        super().__init__(getattr(error, "mistakes", ()))
        self.args = (f"{scope.node.path}: {error}",)
