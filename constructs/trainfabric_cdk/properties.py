"""Properties of the wrong Python type, which Python takes for something else: any text for true, a text for a list.

Values of the CDK's context and of environment variables are always text, so that `retain="false"` would keep nothing
back. Constructs of the CDK check their own types; ours do it here, before anything else looks at a value.
"""

from __future__ import annotations

import functools
import inspect
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from constructs import Construct

from trainfabric_cdk.errors import is_known, is_number, is_whole_number, refuse
from trainfabric_plan.errors import Mistake

_Initialiser = TypeVar("_Initialiser", bound=Callable[..., None])
_NOT_AN_OBJECT = (str, int, float, bool, bytes, list, tuple, dict, set, type(None))
"""What is never one of the CDK's objects, such as an `ec2.IVpc`."""


def checked_types(*, but: Sequence[str] = ()) -> Callable[[_Initialiser], _Initialiser]:
    """A decorator of a construct's `__init__(self, scope, id, *, …)`: its properties have the types that they declare.

    Tokens are taken for what they stand for. Values of a `Literal` and of types that nobody listed here are not judged.

    Args:
        but: Properties that the construct judges itself, with a better message.

    Raises:
        PropertyError: By the decorated `__init__`, with every property of the wrong type.
    """

    def decorated(initialise: _Initialiser) -> _Initialiser:
        @functools.wraps(initialise)
        def checked(self: Any, scope: Construct, id: str, **properties: Any) -> None:
            hints = _hints(initialise)
            judged = {name: value for name, value in properties.items() if name in hints and name not in but}
            refuse(_mistakes(scope, id, hints, judged))
            initialise(self, scope, id, **properties)

        return typing.cast(_Initialiser, checked)

    return decorated


def _path(scope: object) -> str:
    path = scope.node.path if isinstance(scope, Construct) else ""
    return f"{path}/" if path else ""


@functools.cache
def _hints(initialise: Callable[..., None]) -> Mapping[str, Any]:
    """Types of the keyword-only properties."""
    hints = typing.get_type_hints(initialise)
    parameters = inspect.signature(initialise).parameters.values()
    return {one.name: hints[one.name] for one in parameters if one.kind is one.KEYWORD_ONLY}


def _mistakes(scope: Construct, id: str, hints: Mapping[str, Any], properties: Mapping[str, Any]) -> Iterator[Mistake]:
    for name, value in properties.items():
        allowed = _alternatives(hints[name])
        if any(_fits(value, one) for one in allowed) or (_may_be_token(value) and not is_known(value)):
            continue
        rule, remedy = _rule(allowed[0])
        yield Mistake(where=f"{_path(scope)}{id}", name=name, rule=rule, got=_shown(value), remedy=remedy)


def _alternatives(hint: Any) -> tuple[Any, ...]:
    is_union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    return typing.get_args(hint) if is_union else (hint,)


def _may_be_token(value: object) -> bool:
    """Whether a value of the wrong type may be a token: a number that stands for one, or an `IResolvable`."""
    return isinstance(value, (float, str, list)) or hasattr(value, "creation_stack")


def _fits(value: Any, hint: Any) -> bool:
    origin = typing.get_origin(hint)
    if hint in (str, bool, type(None)):
        return isinstance(value, hint)
    if hint is int:
        return is_whole_number(value)
    if hint is float:
        return is_number(value)
    if origin is Sequence:
        return isinstance(value, (list, tuple)) and all(_fits(one, typing.get_args(hint)[0]) for one in value)
    if origin is Mapping:
        return isinstance(value, Mapping)
    if isinstance(hint, type):
        return not isinstance(value, _NOT_AN_OBJECT) if _is_interface(hint) else isinstance(value, hint)
    return True


def _is_interface(hint: type) -> bool:
    """Whether it is a `Protocol` of the CDK, whose objects Python cannot tell."""
    return bool(getattr(hint, "_is_protocol", False))


def _rule(hint: Any) -> tuple[str, str | None]:
    """What a value must be, in words, and what to do."""
    if typing.get_origin(hint) is Sequence:
        inner = typing.get_args(hint)[0]
        words = "texts" if inner is str else f"{_named(inner)} objects"
        return f"a list of {words}", "put it into a list"
    if typing.get_origin(hint) is Mapping:
        return "a mapping", None
    named = {str: "text", bool: "True or False", int: "a whole number", float: "a number"}
    if hint in named:
        return named[hint], "text counts as true whatever it says: compare it" if hint is bool else None
    if _is_interface(hint):
        return (
            f"an {_named(hint)} of the CDK",
            "import what exists, such as with Vpc.from_lookup or Bucket.from_bucket_name",
        )
    return f"a {_named(hint)}", None


def _named(hint: Any) -> str:
    return str(getattr(hint, "__name__", hint))


def _shown(value: object) -> str:
    return repr(value) if isinstance(value, _NOT_AN_OBJECT) else f"a {type(value).__name__}"
