"""From plain data to an `Environment`, with every mistake reported at once."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from trainfabric_plan.environment.rules import Sections, mistakes_across
from trainfabric_plan.environment.types import Environment
from trainfabric_plan.errors import InvalidInput, Mistake

Path = tuple[str, ...]


def validate_environment(data: object, where: str, locate: Callable[[Path], str] | None = None) -> Environment:
    """The environment that `data` describes.

    Args:
        data: What the file holds: a mapping of the keys of `Environment`.
        where: Names the file in messages.
        locate: Gives `where` for a path of keys, such as `demo.yaml:12`; `where` itself if not given.

    Raises:
        InvalidInput: With every mistake found, in the order of the file's sections.
    """
    if not isinstance(data, Mapping):
        rule = "a mapping with the keys name, region, fleet, training"
        raise InvalidInput([Mistake(where=where, name="the file", rule=rule, got=_shown(data))])
    mistakes: list[Mistake] = []
    environment: Environment | None = None
    try:
        environment = Environment.model_validate(data)
    except ValidationError as error:
        mistakes += [_mistake(where, details) for details in error.errors()]
    mistakes += mistakes_across(where, _sections(data))
    if mistakes or environment is None:
        raise InvalidInput([_located(found, locate) for found in _in_order(mistakes)])
    return environment


def _sections(data: Mapping[Any, Any]) -> Sections:
    named = [name for name in Sections.__dataclass_fields__ if name in Environment.model_fields]
    fleet = data.get("fleet")
    instance_type = fleet.get("instance_type") if isinstance(fleet, Mapping) else None
    return Sections(
        **{name: _section(data, name) for name in named},
        instance_type=instance_type if isinstance(instance_type, str) else None,
    )


def _section(data: Mapping[Any, Any], name: str) -> Any:
    """The section validated alone and without unknown keys, `None` if it is broken or required and absent."""
    field = Environment.model_fields[name]
    if name not in data:
        return None if field.is_required() else field.default
    kind: TypeAdapter[Any] = TypeAdapter(Annotated[field.annotation, field])  # type: ignore[arg-type]
    try:
        return kind.validate_python(data[name], strict=True)
    except ValidationError as error:
        unknown = [details["loc"] for details in error.errors() if details["type"] == "extra_forbidden"]
    try:
        return kind.validate_python(_without(data[name], unknown), strict=True) if unknown else None
    except ValidationError:
        return None


def _without(value: Any, paths: list[tuple[int | str, ...]]) -> Any:
    """A mapping without the keys at these paths, so that one unknown key hides no other mistake."""
    if not isinstance(value, Mapping):
        return value
    ends = {path[0] for path in paths if len(path) == 1}
    return {
        key: _without(inner, [path[1:] for path in paths if len(path) > 1 and path[0] == key])
        for key, inner in value.items()
        if key not in ends
    }


def _in_order(mistakes: list[Mistake]) -> list[Mistake]:
    """Each mistake once, by the section it is in; unknown sections come last."""
    sections = list(Environment.model_fields)

    def rank(found: Mistake) -> int:
        section = found.name.partition(".")[0]
        return sections.index(section) if section in sections else len(sections)

    return sorted(dict.fromkeys(mistakes), key=rank)


def _located(found: Mistake, locate: Callable[[Path], str] | None) -> Mistake:
    if locate is None:
        return found
    return Mistake(
        where=locate(tuple(found.name.split("."))), name=found.name, rule=found.rule, got=found.got, remedy=found.remedy
    )


def _mistake(where: str, details: ErrorDetails) -> Mistake:
    path = tuple(str(part) for part in details["loc"])
    name = ".".join(path) or "the file"
    value = details["input"]
    context = details.get("ctx", {})
    match details["type"]:
        case "extra_forbidden":
            return Mistake(where=where, name=name, rule="a known key", got=path[-1], remedy=_known_keys(path))
        case "missing":
            return Mistake(where=where, name=name, rule="given", got="nothing", remedy=f"add {path[-1]}")
        case "string_pattern_mismatch":
            return Mistake(where=where, name=name, rule=f"text that matches {context['pattern']}", got=repr(value))
        case "literal_error":
            return Mistake(where=where, name=name, rule=f"one of {context['expected']}", got=repr(value))
        case "greater_than_equal":
            return Mistake(where=where, name=name, rule=f"at least {context['ge']}", got=repr(value))
        case "less_than_equal":
            return Mistake(where=where, name=name, rule=f"at most {context['le']}", got=repr(value))
        case "greater_than":
            return Mistake(where=where, name=name, rule=f"more than {context['gt']}", got=repr(value))
        case "invalid_key":
            return Mistake(
                where=where, name=name, rule="a key that is text", got=repr(value), remedy="put it in quotes"
            )
        case "string_type":
            return Mistake(where=where, name=name, rule="text", got=_shown(value), remedy=_quotes(value))
        case "value_error":
            rule, _, got = str(context["error"]).partition(", got ")
            return Mistake(where=where, name=name, rule=rule, got=got or repr(value))
        case kind:
            return Mistake(where=where, name=name, rule=_KINDS.get(kind, details["msg"]), got=_shown(value))


_KINDS = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "model_type": "a mapping of keys",
    "model_attributes_type": "a mapping of keys",
    "dict_type": "a mapping of keys",
}


def _shown(value: Any) -> str:
    return "nothing" if value is None else repr(value)


def _quotes(value: Any) -> str | None:
    """YAML reads 123 as a number and no as false: text that looks like these needs quotes."""
    return None if value is None or isinstance(value, list | Mapping) else "put it in quotes"


def _known_keys(path: Path) -> str:
    model: type[BaseModel] = Environment
    for part in path[:-1]:
        inner = _model_of(model.model_fields[part].annotation)
        if inner is None:
            break
        model = inner
    near = difflib.get_close_matches(path[-1], model.model_fields, n=1, cutoff=0.5)
    return f"did you mean {near[0]}?" if near else f"the keys here are {', '.join(model.model_fields)}"


def _model_of(annotation: Any) -> type[BaseModel] | None:
    candidates = (annotation, *getattr(annotation, "__args__", ()))
    return next((c for c in candidates if isinstance(c, type) and issubclass(c, BaseModel)), None)
