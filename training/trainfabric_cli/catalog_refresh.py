"""Asks EC2 what it says of instance types, and writes it where constructs and planner look first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from trainfabric_cli.options import region_mistakes, type_mistakes
from trainfabric_node.jobs.aws import aws_errors
from trainfabric_plan.catalog import INSTANCE_TYPES
from trainfabric_plan.catalog.described import Difference, described, differences
from trainfabric_plan.catalog.overrides import Described, overrides_path, read_overrides, write_overrides
from trainfabric_plan.errors import InvalidInput, NotFound

WHERE = "catalog refresh"


@dataclass(frozen=True, kw_only=True)
class Refreshed:
    """What a refresh found and did.

    Attributes:
        region: Region that was asked.
        path: The override file.
        differences: Per type, the facts in which EC2 says something else than the catalog.
        kept: Per type, the facts in which the catalog's word stays against EC2's, with the reason.
        added: Types that the file did not have.
        changed: Types of which the file said something else.
        same: Types of which the file said the same.
        left: Types of the file that were not asked for, or that the region does not offer; they stay as they were.
        absent: Types that were asked for and that the region does not offer.
    """

    region: str
    path: Path
    differences: dict[str, list[Difference]]
    kept: dict[str, dict[str, str]]
    added: list[str]
    changed: list[str]
    same: list[str]
    left: list[str]
    absent: list[str]

    def document(self) -> dict[str, Any]:
        """As JSON."""
        named = ("fact", "catalog", "ec2")
        return {
            "region": self.region,
            "file": str(self.path),
            "differences": {
                name: [dict(zip(named, one, strict=True)) for one in found] for name, found in self.differences.items()
            },
            **{key: getattr(self, key) for key in ("kept", "added", "changed", "same", "left", "absent")},
        }


def refreshed(*, region: str, names: Iterable[str], path: Path | None, profile: str | None) -> Refreshed:
    """Ask EC2, complete the override file, and say what was found.

    Raises:
        InvalidInput: If a name cannot be one, or the file that lies there is not ours.
        NotFound: If the region offers none of the types.
        Unreachable: If there are no credentials, or EC2 does not accept them.
    """
    names = list(names)
    _check(region, names)
    path = path or overrides_path()
    before = read_overrides(path)
    wanted = list(dict.fromkeys(names)) or list(dict.fromkeys((*INSTANCE_TYPES, *before)))
    today = datetime.now(UTC).date().isoformat()
    entries = {entry["InstanceType"]: entry for entry in _entries(region, profile)}
    told = {name: described(entries[name], region=region, date=today) for name in wanted if name in entries}
    if not told:
        remedy = "ask a region that offers the type"
        raise NotFound(f"{WHERE}: instance type must be one that {region} offers, got {', '.join(wanted)}; {remedy}")
    done = _compared(region, path, before, told, wanted)
    if done.added or done.changed:
        write_overrides(path, {**before, **{name: told[name] for name in (*done.added, *done.changed)}})
    return done


def _check(region: str, names: Iterable[str]) -> None:
    mistakes = [*region_mistakes(WHERE, "--region", region)]
    mistakes += [mistake for name in names for mistake in type_mistakes(WHERE, "NAME", name)]
    if mistakes:
        raise InvalidInput(mistakes)


def _entries(region: str, profile: str | None) -> Iterator[dict[str, Any]]:
    import boto3
    from botocore.config import Config

    config = Config(retries={"mode": "standard", "max_attempts": 3}, connect_timeout=5, read_timeout=30)
    with aws_errors(WHERE, "ec2"):
        client = boto3.session.Session(profile_name=profile, region_name=region).client("ec2", config=config)
        for page in client.get_paginator("describe_instance_types").paginate():
            yield from page["InstanceTypes"]


def _compared(
    region: str, path: Path, before: dict[str, Described], told: dict[str, Described], wanted: list[str]
) -> Refreshed:
    found = {name: differences(INSTANCE_TYPES[name], told[name]) for name in told if name in INSTANCE_TYPES}
    against = {
        name: {fact: INSTANCE_TYPES[name].sources[fact] for fact, _, _ in found[name] if _stays(name, fact)}
        for name in found
    }
    same = [name for name in told if name in before and _facts(before[name]) == _facts(told[name])]
    return Refreshed(
        region=region,
        path=path,
        differences={name: rows for name, rows in found.items() if rows},
        kept={name: facts for name, facts in against.items() if facts},
        added=[name for name in told if name not in before],
        changed=[name for name in told if name in before and name not in same],
        same=same,
        left=[name for name in before if name not in told],
        absent=[name for name in wanted if name not in told],
    )


def _stays(name: str, fact: str) -> bool:
    return fact in INSTANCE_TYPES[name].against_ec2


def _facts(told: Described) -> dict[str, Any]:
    return told.model_dump(exclude={"date"})
