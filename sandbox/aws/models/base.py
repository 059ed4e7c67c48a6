"""What our CloudFormation models have in common: they check, they record, and some of them act on moto's backends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, ClassVar, Self

from moto.cloudformation.exceptions import UnformattedGetAttTemplateException, ValidationError
from moto.moto_api._internal import mock_random

from sandbox.aws.schema import api_problems, coerced, resource_schema


class Kind(StrEnum):
    """How much of a resource exists after a deploy."""

    REAL = "real"
    """An object in moto that boto3 can read."""
    RECORD = "record"
    """Properties that passed the checks; no service behind them."""


class Resource:
    """A CloudFormation resource that moto lacks.

    A subclass names its `TYPE`; it may say which properties `attributes` gives to Fn::GetAtt and which API call its
    properties amount to (`API`, `api_parameters`); a real one overrides `create` and `remove`.
    """

    TYPE: ClassVar[str]
    KIND: ClassVar[Kind] = Kind.RECORD
    NAME_PROPERTY: ClassVar[str] = ""
    ATTRIBUTES: ClassVar[tuple[str, ...]] = ()
    API: ClassVar[tuple[str, str] | None] = None

    def __init__(self, name: str, properties: dict[str, Any], account: str, region: str) -> None:
        self.name = name
        self.properties = properties
        self.account = account
        self.region = region
        self.physical_resource_id = self.create()

    def create(self) -> str:
        """Make what exists beyond the record; returns the physical id (what Ref gives)."""
        return self.name

    def update(self, properties: dict[str, Any]) -> None:
        """Take new properties that need no replacement."""
        self.remove()
        self.properties = properties
        self.physical_resource_id = self.create()

    def remove(self) -> None:
        """Undo `create`."""

    def attribute(self, name: str) -> str:
        """Value of one of `ATTRIBUTES`."""
        return self.physical_resource_id

    @classmethod
    def api_parameters(cls, properties: dict[str, Any]) -> dict[str, Any]:
        """The parameters of the `API` call that these properties amount to."""
        return properties

    # --- moto's side -------------------------------------------------------------------------------------------

    @property
    def kind(self) -> Kind:
        """Read by the report of what exists."""
        return self.KIND

    @classmethod
    def cloudformation_type(cls) -> str:
        """See `CloudFormationModel`."""
        return cls.TYPE

    @classmethod
    def cloudformation_name_type(cls) -> str:
        """See `CloudFormationModel`."""
        return cls.NAME_PROPERTY

    @classmethod
    def has_cfn_attr(cls, attr: str) -> bool:
        """See `CloudFormationModel`."""
        return attr in cls.ATTRIBUTES

    def get_cfn_attribute(self, attribute: str) -> str:
        """See `CloudFormationModel`."""
        if attribute not in self.ATTRIBUTES:
            raise UnformattedGetAttTemplateException
        return self.attribute(attribute)

    @classmethod
    def create_from_cloudformation_json(
        cls, resource_name: str, cloudformation_json: dict[str, Any], account_id: str, region_name: str, **_: Any
    ) -> Self:
        """See `CloudFormationModel`."""
        return cls(resource_name, cls.checked(cloudformation_json["Properties"]), account_id, region_name)

    @classmethod
    def update_from_cloudformation_json(
        cls,
        original_resource: Self,
        new_resource_name: str,
        cloudformation_json: dict[str, Any],
        account_id: str,
        region_name: str,
    ) -> Self:
        """Replace the resource if a create-only property changes, else update it; see `CloudFormationModel`."""
        properties = cls.checked(cloudformation_json["Properties"])
        if cls.needs_replacement(original_resource.properties, properties):
            successor = cls(new_resource_name, properties, account_id, region_name)
            original_resource.remove()
            return successor
        original_resource.update(properties)
        return original_resource

    def delete(self, account_id: str, region_name: str) -> None:
        """See moto's ResourceMap._delete_resource."""
        self.remove()

    @classmethod
    def checked(cls, properties: dict[str, Any]) -> dict[str, Any]:
        """The properties with their scalars as the schema asks, if the API would take them."""
        typed: dict[str, Any] = coerced(properties, resource_schema(cls.TYPE) or {})
        if cls.API is not None:
            refuse(api_problems(*cls.API, cls.api_parameters(typed)))
        return typed

    @classmethod
    def needs_replacement(cls, before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
        """Whether a property that the schema calls create-only differs."""
        paths = (resource_schema(cls.TYPE) or {}).get("createOnlyProperties", [])
        names = {path.removeprefix("/properties/").split("/")[0] for path in paths}
        return any(before.get(name) != after.get(name) for name in names)


def refuse(problems: Any) -> None:
    """Fail the deploy with CloudFormation's 400 ValidationError if there is any problem."""
    found = list(problems)
    if found:
        raise ValidationError(message="; ".join(found))


def existing(what: str, identifier: str, look_up: Callable[[str], Any]) -> Any:
    """What `look_up` finds, or a failed deploy that says what does not exist."""
    try:
        found = look_up(identifier)
    except Exception as error:
        raise ValidationError(message=f"{what} {identifier} does not exist ({error})") from error
    if not found:
        raise ValidationError(message=f"{what} {identifier} does not exist")
    return found


def random_hex(length: int = 17) -> str:
    """The random part of a resource id."""
    digits: str = mock_random.get_random_hex(length)
    return digits
