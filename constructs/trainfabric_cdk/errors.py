"""What a construct says about a property that cannot work."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from aws_cdk import Token
from constructs import IConstruct

from trainfabric_plan.errors import InvalidInput, Mistake, TrainfabricError


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
    """Whether no value is a token: only then can it be judged."""
    return not any(Token.is_unresolved(value) for value in values)


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
