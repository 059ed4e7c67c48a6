"""Names and properties of the constructs, as data: `python -m tests.release.interface` writes those of a release."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import trainfabric_cdk
from trainfabric_cdk import testing

Interface = Mapping[str, Mapping[str, Mapping[str, bool]]]


def interface() -> Interface:
    """Every public name with its properties or arguments and its ways to make one, and every helper for tests."""
    found: dict[str, Mapping[str, Mapping[str, bool]]] = {}
    for name in trainfabric_cdk.__all__:
        made: Any = getattr(trainfabric_cdk, name)
        found[name] = _arguments(made.__init__ if inspect.isclass(made) else made)
        for method, value in vars(made).items():
            if isinstance(value, classmethod | staticmethod) and not method.startswith("_"):
                found[f"{name}.{method}"] = _arguments(getattr(made, method))
    helpers = {name: value for name, value in vars(testing).items() if inspect.isfunction(value)}
    own = {name: value for name, value in helpers.items() if value.__module__ == testing.__name__ and name[0] != "_"}
    return {**found, **{f"testing.{name}": _arguments(value) for name, value in own.items()}}


def breaks(before: Interface, after: Interface) -> list[str]:
    """What of an earlier interface an app could use and can no more, or that asks more of it."""
    return sorted(_breaks(before, after))


def _breaks(before: Interface, after: Interface) -> Iterator[str]:
    for name, known in before.items():
        if name not in after:
            yield f"{name} is gone"
            continue
        now = after[name]
        yield from (f"{name}.{one} is gone" for one in known if one not in now)
        for one, value in now.items():
            if value["needed"] and not known.get(one, {"needed": False})["needed"]:
                yield f"{name}.{one} is needed now"


def _arguments(function: Any) -> Mapping[str, Mapping[str, bool]]:
    named = inspect.signature(function).parameters.values()
    plain = [one for one in named if one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)]
    return {one.name: {"needed": one.default is one.empty} for one in plain if one.name != "self"}


if __name__ == "__main__":
    target = Path(__file__).parent / "interface.json"
    target.write_text(json.dumps(interface(), indent=1, sort_keys=True) + "\n")
