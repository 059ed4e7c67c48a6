"""The user's own facts about instance types: what EC2 described to their account goes before the catalog's rows.

They lie in `trainfabric.catalog.json` of the working directory, where CDK keeps `cdk.context.json`, or in the file that
the variable `TRAINFABRIC_CATALOG` names; `trainfabric catalog refresh` writes it. It belongs into version control: the
same file gives the same templates everywhere, without credentials.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from trainfabric_plan.catalog.instances import OVERRIDES_FILE, OVERRIDES_VARIABLE
from trainfabric_plan.catalog.types import InstanceType, NetworkCard
from trainfabric_plan.errors import InvalidInput, Mistake, mistake, unreadable
from trainfabric_plan.model import Strict

_COUNT = Annotated[int, Field(ge=0)]
_REMEDY = "write it with `trainfabric catalog refresh --region R`, or remove it"
_NOT_EC2S = "EC2 does not tell it, and the catalog has no row of this type"
_ONLY_OURS = ("efa_gbps", "ip_gbps", "links", "gpudirect_rdma", "accelerator_facts", "ultraserver_nodes")


class Card(Strict):
    """A network card, as in `NetworkCard`."""

    interfaces: Annotated[int, Field(ge=1)]
    efa: bool
    ena: bool = True


class Described(Strict):
    """What EC2 said of one type, in the words of `InstanceType`."""

    region: str
    """Region that was asked."""
    date: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")]
    """Day on which it was asked."""
    source: str
    """What was asked."""
    accelerator: str | None = None
    accelerators: _COUNT = 0
    accelerator_memory_mib: _COUNT = 0
    maker: Literal["nvidia", "aws"] | None = None
    vcpus: Annotated[int, Field(ge=1)]
    memory_gib: Annotated[float, Field(gt=0)]
    nvme_gb: _COUNT = 0
    architecture: Literal["x86_64", "arm64"]
    network_gbps: Annotated[float, Field(ge=0)]
    cards: Annotated[list[Card], Field(min_length=1)]
    usage_classes: list[str]
    cluster_placement: bool


class Overrides(Strict):
    """The whole file."""

    format: Literal[1]
    """Of the file; 1."""
    instance_types: dict[str, Described]
    """By name."""


FACTS = tuple(name for name in Described.model_fields if name not in ("region", "date", "source"))
"""What EC2 tells of a type."""


def overrides_path() -> Path:
    """Where the user's own facts lie, whether or not there are any."""
    return Path(os.environ.get(OVERRIDES_VARIABLE) or OVERRIDES_FILE)


def read_overrides(path: Path) -> dict[str, Described]:
    """The user's own facts by name of the type; none if there is no such file.

    Raises:
        InvalidInput: If the file is not as `catalog refresh` writes it, every mistake of it.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise unreadable(path, "the file", error) from None
    try:
        return Overrides.model_validate(json.loads(text), strict=True).instance_types
    except json.JSONDecodeError as error:
        problem = Mistake(where=str(path), name="the file", rule="JSON", got=str(error), remedy=_REMEDY)
        raise InvalidInput([problem]) from None
    except ValidationError as error:
        raise InvalidInput([_mistake(path, one) for one in error.errors()]) from None


def write_overrides(path: Path, described: Mapping[str, Described]) -> None:
    """Write the file, in an order that does not depend on when which type was asked for.

    Raises:
        InvalidInput: If it cannot be written.
    """
    types = {name: described[name].model_dump(mode="json") for name in sorted(described)}
    text = json.dumps({"format": 1, "instance_types": types}, indent=1, ensure_ascii=False)
    try:
        path.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise mistake(str(path), "the file", "one that can be written", error.strerror) from None


def overriding_facts() -> Mapping[str, Described]:
    """The user's own facts, read again when the file changes.

    Raises:
        InvalidInput: If the file is not as `catalog refresh` writes it.
    """
    path = overrides_path().absolute()
    try:
        return _read_at(path, path.stat().st_mtime_ns)
    except FileNotFoundError:
        return {}


@lru_cache(maxsize=4)
def _read_at(path: Path, _changed_ns: int) -> Mapping[str, Described]:
    return read_overrides(path)


def with_facts(row: InstanceType | None, name: str, told: Described) -> InstanceType:
    """The row with what EC2 told in it.

    What EC2 does not tell stays, or is unknown without a row; so does what the row knows better than EC2.
    """
    facts: dict[str, Any] = {fact: getattr(told, fact) for fact in FACTS}
    facts["cards"] = tuple(NetworkCard(**card.model_dump()) for card in told.cards)
    facts["usage_classes"] = frozenset(told.usage_classes)
    facts |= {"source": f"{told.source} in {told.region}", "date": told.date}
    if row is None:
        return InstanceType(name=name, **facts, unknown=dict.fromkeys(_ONLY_OURS, _NOT_EC2S))
    facts = {key: value for key, value in facts.items() if key not in row.against_ec2}
    kept = {key: text for key, text in row.unknown.items() if key not in FACTS}
    sources = {key: text for key, text in row.sources.items() if key not in FACTS or key in row.against_ec2}
    same_cards = row.cards is not None and len(row.cards) == len(told.cards)
    return replace(row, **facts, ip_cards=row.ip_cards if same_cards else (0,), unknown=kept, sources=sources)


def _mistake(path: Path, problem: Any) -> Mistake:
    name = ".".join(map(str, problem["loc"])) or "the file"
    rule = f"as this version writes it ({problem['msg'].lower()})"
    return Mistake(where=str(path), name=name, rule=rule, got=str(problem["input"])[:60], remedy=_REMEDY)
