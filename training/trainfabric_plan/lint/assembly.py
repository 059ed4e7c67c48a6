"""Templates that are looked at together, so that references between them can be followed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, TypeVar, cast

from trainfabric_plan.lint import intrinsics
from trainfabric_plan.lint.conditions import condition
from trainfabric_plan.lint.values import MISSING, UNKNOWN, Reference, Resource, Template

_NESTED = "AWS::CloudFormation::Stack"
_NO_MACRO = ("AWS::Serverless", "AWS::LanguageExtensions", "AWS::SecretsManager", "AWS::CodeDeploy")
_MOST_STEPS = 50

T = TypeVar("T")


class Assembly:
    """Templates of one app: parameters of nested stacks, their outputs and imported values are followed."""

    def __init__(self, templates: Iterable[Template], *, nested: Mapping[str, Template] | None = None) -> None:
        """An assembly.

        Args:
            templates: The templates of the stacks.
            nested: Templates of nested stacks by the `aws:asset:path` of the resource that makes them.
        """
        self._nested = dict(nested or {})
        self.templates = (*templates, *self._nested.values())
        self._deep = 0
        self._worked_out: dict[Callable[[Assembly], Any], Any] = {}

    def once(self, work_out: Callable[[Assembly], T]) -> T:
        """What a function says about this assembly, which never changes: many rules ask, and it is called once."""
        if work_out not in self._worked_out:
            self._worked_out[work_out] = work_out(self)
        return cast(T, self._worked_out[work_out])

    @cached_property
    def resources(self) -> tuple[Resource, ...]:
        """Every resource of every template, but for those whose condition is known not to hold."""
        return tuple(
            Resource(template, name, self)
            for template in self.templates
            for name, body in template.section("Resources").items()
            if self._is_made(body, template)
        )

    @cached_property
    def _nested_stacks(self) -> tuple[Resource, ...]:
        """Resources that are stacks, whatever their conditions: those may ask for the parameters that these give."""
        return tuple(
            Resource(template, name, self)
            for template in self.templates
            for name, body in template.section("Resources").items()
            if isinstance(body, Mapping) and body.get("Type") == _NESTED
        )

    def of_type(self, *types: str) -> Iterator[Resource]:
        """Resources of these types."""
        return (resource for resource in self.resources if resource.type in types)

    def find(self, template: Template, name: str) -> Resource | None:
        """The resource with this logical id in a template."""
        body = template.section("Resources").get(name)
        return Resource(template, name, self) if self._is_made(body, template) else None

    def _is_made(self, body: object, template: Template) -> bool:
        """Whether it is a resource, and no condition that is known keeps it from being made."""
        if not isinstance(body, Mapping) or "Type" not in body:
            return False
        return "Condition" not in body or condition(self, body["Condition"], template) is not False

    def is_complete(self, template: Template) -> bool:
        """Whether a template shows all of its resources: neither a macro nor a loop makes more of them."""
        macros = template.body.get("Transform", [])
        named = [macros] if isinstance(macros, str | Mapping) else macros
        known = all(isinstance(macro, str) and macro.startswith(_NO_MACRO) for macro in named)
        return known and not any(name.startswith("Fn::") for name in template.section("Resources"))

    def is_used_elsewhere(self, resource: Resource) -> bool:
        """Whether something that these templates don't show gets the resource: a nested stack or a custom resource."""
        return any(
            self._refers(other.body.get("Properties"), resource)
            for other in self.resources
            if other.template is resource.template and self._is_opaque(other)
        )

    def _is_opaque(self, resource: Resource) -> bool:
        if resource.type == _NESTED:
            return self.nested_template(resource) is None
        return resource.type.startswith("Custom::") or resource.type.endswith("::MODULE")

    def _refers(self, raw: Any, resource: Resource) -> bool:
        if isinstance(raw, Mapping):
            known = self.resolve(raw, resource.template)
            if isinstance(known, Reference):
                return known.resource == resource
            return any(self._refers(value, resource) for value in raw.values())
        return isinstance(raw, list) and any(self._refers(value, resource) for value in raw)

    def nested_template(self, stack: Resource) -> Template | None:
        """The template of a nested stack, if it is at hand."""
        metadata = stack.body.get("Metadata")
        path = metadata.get("aws:asset:path") if isinstance(metadata, Mapping) else None
        return self._nested.get(path) if isinstance(path, str) else None

    def resolve(self, raw: Any, template: Template) -> Any:
        """A plain value, a list or mapping of raw values, a `Reference`, `UNKNOWN` or `MISSING`."""
        if self._deep > _MOST_STEPS:  # templates may go in circles
            return UNKNOWN
        self._deep += 1
        try:
            return intrinsics.resolve(self, raw, template)
        finally:
            self._deep -= 1

    def ref(self, name: str, template: Template) -> Any:
        """What `Ref` says: a resource, a parameter that somebody gave, or `AWS::NoValue`."""
        if name == "AWS::NoValue":
            return MISSING
        resource = self.find(template, name)
        if resource is not None:
            return Reference(resource, None)
        return self._parameter(name, template)

    def attribute(self, name: str, attribute: str, template: Template) -> Any:
        """What `Fn::GetAtt` says: of a nested stack at hand, the value of its output."""
        resource = self.find(template, name)
        if resource is None:
            return UNKNOWN
        nested = self.nested_template(resource) if attribute.startswith("Outputs.") else None
        if nested is not None:
            return self._output(nested, attribute.removeprefix("Outputs."))
        return Reference(resource, attribute)

    def imported(self, name: str) -> Any:
        """The exported value of this name, if one of the templates exports it."""
        for template in self.templates:
            for output, body in template.section("Outputs").items():
                export = body.get("Export") if isinstance(body, Mapping) else None
                if isinstance(export, Mapping) and self.resolve(export.get("Name"), template) == name:
                    return self._output(template, output)
        return UNKNOWN

    def _output(self, template: Template, name: str) -> Any:
        body = template.section("Outputs").get(name)
        return self.resolve(body.get("Value"), template) if isinstance(body, Mapping) else UNKNOWN

    def _parameter(self, name: str, template: Template) -> Any:
        if name in template.parameters:
            given, kind = template.parameters[name], template.section("Parameters").get(name, {})
            return given.split(",") if isinstance(given, str) and _is_list(kind) else self.resolve(given, template)
        for stack in self._nested_stacks:
            if self.nested_template(stack) is template:
                given = stack.properties("Parameters", name).known
                return UNKNOWN if given is MISSING else given
        return UNKNOWN


def _is_list(parameter: object) -> bool:
    kind = parameter.get("Type") if isinstance(parameter, Mapping) else None
    return isinstance(kind, str) and (kind == "CommaDelimitedList" or "List<" in kind)
