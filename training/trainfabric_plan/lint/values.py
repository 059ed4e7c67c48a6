"""Values in a template, as far as the template says what they are.

An intrinsic function is worked out where everything that it needs stands in the templates at hand; everything else is
unknown, and a rule never judges what is unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Protocol


class _Marker:
    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


UNKNOWN: Final = _Marker("UNKNOWN")
"""A value that is known only when the stack is deployed."""
MISSING: Final = _Marker("MISSING")
"""No value at all: the key is absent, or is `AWS::NoValue`."""

Step = str | int
Locate = Callable[[tuple[Step, ...]], int | None]


def _no_lines(_: tuple[Step, ...]) -> int | None:
    return None


@dataclass(frozen=True, eq=False)
class Template:
    """One CloudFormation template.

    Attributes:
        name: What messages call it: a file path or the name of a stack.
        body: The template with intrinsic functions in their long form.
        parameters: Values of parameters, where somebody gave them.
        locate: Line of the value at a path, where lines are known.
        root: Steps inside a resource to what the file holds, where that is no template but what one would hold.
    """

    name: str
    body: Mapping[str, Any]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    locate: Locate = _no_lines
    root: tuple[Step, ...] = ()

    def section(self, name: str) -> Mapping[str, Any]:
        """A section such as `Resources`; empty where it is absent or no mapping."""
        found = self.body.get(name)
        return found if isinstance(found, Mapping) else {}


@dataclass(frozen=True)
class Place:
    """Where a value stands."""

    template: Template
    logical_id: str
    steps: tuple[Step, ...]

    @property
    def path(self) -> str:
        """The steps inside the resource, or the file, in the notation of programs: `Properties.Tags[0].Key`."""
        steps = self.steps[len(self.template.root) :]
        text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
        return text.removeprefix(".")

    @property
    def line(self) -> int | None:
        """Line in the template's file, where it is known."""
        if self.template.root:
            return self.template.locate(self.steps[len(self.template.root) :])
        return self.template.locate(("Resources", self.logical_id, *self.steps))


class Resolver(Protocol):
    """What works out intrinsic functions: an assembly of templates."""

    def resolve(self, raw: Any, template: Template) -> Any:
        """A plain value, a list or mapping of raw values, a `Reference`, `UNKNOWN` or `MISSING`."""
        ...

    def find(self, template: Template, name: str) -> Resource | None:
        """The resource with this logical id in a template."""
        ...


@dataclass(frozen=True)
class Reference:
    """`Ref` or `Fn::GetAtt` of a resource; `attribute` is `None` for `Ref`."""

    resource: Resource
    attribute: str | None


@dataclass(frozen=True, eq=False)
class Value:
    """A value with the place where it stands; `known` is what it is, as far as the templates say."""

    resolver: Resolver
    place: Place
    raw: Any
    known: Any

    def at(self, *steps: Step) -> Value:
        """The value at a path inside this one; missing or unknown where there is none."""
        value = self
        for step in steps:
            value = value._step(step)
        return value

    def _step(self, step: Step) -> Value:
        if isinstance(self.known, Mapping) and isinstance(step, str):
            raw = self.known.get(step, MISSING)
        elif isinstance(self.known, list) and isinstance(step, int):
            raw = self.known[step] if step < len(self.known) else MISSING
        else:
            raw = UNKNOWN if self.known is UNKNOWN or isinstance(self.known, Reference) else MISSING
        return self._inside(raw, step)

    def _inside(self, raw: Any, *steps: Step) -> Value:
        place = Place(self.place.template, self.place.logical_id, (*self.place.steps, *steps))
        return Value(self.resolver, place, raw, self.resolver.resolve(raw, place.template))

    @property
    def is_missing(self) -> bool:
        """Whether there is no value."""
        return self.known is MISSING

    @property
    def is_unknown(self) -> bool:
        """Whether only a deployment would tell the value."""
        return self.known is UNKNOWN

    @cached_property
    def items(self) -> list[Value]:
        """Elements of a list, without those that are `AWS::NoValue`; empty for anything else."""
        if not isinstance(self.known, list):
            return []
        return [value for index in range(len(self.known)) if not (value := self.at(index)).is_missing]

    @property
    def branches(self) -> list[Value]:
        """What it may be: itself, or both sides of a condition that is undecided, without `AWS::NoValue`."""
        given = self.raw.get("Fn::If") if self.is_unknown and isinstance(self.raw, Mapping) else None
        if not (isinstance(given, list) and len(given) == 3):
            return [self]
        sides = [self._inside(given[side], "Fn::If", side) for side in (1, 2)]
        return [branch for side in sides if not side.is_missing for branch in side.branches]

    @property
    def possible_items(self) -> list[Value]:
        """Elements that the list has or may have while conditions are undecided: never to be counted."""
        return [branch for whole in self.branches for item in whole.items for branch in item.branches]

    @property
    def listed(self) -> list[Value]:
        """Elements of a list, or the one value that stands where a list may."""
        if isinstance(self.known, list):
            return self.items
        return [] if self.is_missing else [self]

    @property
    def is_whole_list(self) -> bool:
        """Whether it is a list whose elements are all known: only then may they be counted."""
        return isinstance(self.known, list) and not any(item.is_unknown for item in self.items)

    @property
    def keys(self) -> tuple[str, ...]:
        """Keys of a mapping."""
        return tuple(self.known) if isinstance(self.known, Mapping) else ()

    @property
    def text(self) -> str | None:
        """The value, if it is a known text."""
        return self.known if isinstance(self.known, str) else None

    @property
    def number(self) -> float | None:
        """The value, if it is a known number; CloudFormation takes numbers as text, too."""
        if isinstance(self.known, bool) or not isinstance(self.known, int | float | str):
            return None
        try:
            return float(self.known)
        except ValueError:
            return None

    @property
    def whole(self) -> int | None:
        """The value, if it is a known whole number."""
        number = self.number
        return int(number) if number is not None and number.is_integer() else None

    @property
    def truth(self) -> bool | None:
        """The value, if it is a known boolean; CloudFormation takes those as text, too."""
        if isinstance(self.known, bool):
            return self.known
        return {"true": True, "false": False}.get(self.known.lower()) if isinstance(self.known, str) else None

    @property
    def reference(self) -> Reference | None:
        """The resource that it refers to, if it does."""
        return self.known if isinstance(self.known, Reference) else None

    def resource(self, *types: str) -> Resource | None:
        """The resource of one of these types that it refers to, if it does."""
        found = self.known.resource if isinstance(self.known, Reference) else None
        return found if found is not None and found.type in types else None

    def walk(self) -> Iterator[Value]:
        """This value and everything inside it."""
        yield self
        inside: Sequence[Step] = range(len(self.known)) if isinstance(self.known, list) else self.keys
        for step in inside:
            yield from self.at(step).walk()


@dataclass(frozen=True)
class Resource:
    """One resource of a template; equal to itself alone."""

    template: Template
    id: str
    resolver: Resolver = field(compare=False, repr=False)

    @property
    def body(self) -> Mapping[str, Any]:
        """The resource as it stands in the template."""
        found: Mapping[str, Any] = self.template.section("Resources")[self.id]
        return found

    @property
    def type(self) -> str:
        """CloudFormation's name of the type."""
        return str(self.body.get("Type", ""))

    def at(self, *steps: Step) -> Value:
        """The value at a path of the resource, such as `"Properties", "UserData"`."""
        whole = Value(self.resolver, Place(self.template, self.id, ()), self.body, self.body)
        return whole.at(*steps)

    def properties(self, *steps: Step) -> Value:
        """The value at a path of the properties."""
        return self.at("Properties", *steps)

    @property
    def depends_on(self) -> tuple[str, ...]:
        """Logical ids in `DependsOn`."""
        given = self.body.get("DependsOn", ())
        return (given,) if isinstance(given, str) else tuple(one for one in given if isinstance(one, str))
