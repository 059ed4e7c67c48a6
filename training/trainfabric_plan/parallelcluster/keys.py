"""The keys of ParallelCluster's configuration file (3.16.1): what each may hold, and what it takes to change it.

The table `keys.csv` says the same as `pcluster/schemas/cluster_schema.py` of aws-parallelcluster 3.16.1, in our words;
`tests/oracle` holds every row to that package.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib import resources

SOURCE = "aws-parallelcluster 3.16.1, pcluster/schemas/cluster_schema.py, read 2026-12-01"


class Kind(StrEnum):
    """What a key holds."""

    SECTION = "section"
    SECTIONS = "sections"
    TEXT = "text"
    TEXTS = "texts"
    WHOLE = "whole"
    NUMBER = "number"
    FLAG = "flag"
    MAP = "map"
    MAPS = "maps"
    ACTIONS = "actions"
    """A script with its arguments, or a sequence of them."""
    ANY = "any"


class OnChange(StrEnum):
    """What a live cluster asks for before it takes a changed value."""

    LIVE = "live"
    """Nothing."""
    LIVE_BUT_IN_ADC = "live_but_in_adc"
    """Nothing; not possible in the regions us-iso…."""
    QUEUE = "queue"
    """A QueueUpdateStrategy: nodes of the queue are drained or terminated and come again as they now should be."""
    QUEUE_IF_REMOVED = "queue_if_removed"
    """Nothing to add or to grow; TERMINATE as QueueUpdateStrategy, or a stopped fleet, to remove or to shrink."""
    PLACEMENT = "placement"
    """A QueueUpdateStrategy; a stopped fleet if ParallelCluster's own placement group goes."""
    SUBNET = "subnet"
    """A QueueUpdateStrategy; not possible beside a Lustre file system that ParallelCluster made."""
    MOUNT = "mount"
    """Nothing for an existing EFS or FSx file system; a QueueUpdateStrategy and no login nodes otherwise."""
    FLEET_STOPPED = "fleet_stopped"
    """A stopped fleet."""
    FLEET_STOPPED_IF_REMOVED = "fleet_stopped_if_removed"
    """Nothing to add; a stopped fleet otherwise."""
    LOGIN_STOPPED = "login_stopped"
    """No running login nodes."""
    LOGIN_STOPPED_IF_REMOVED = "login_stopped_if_removed"
    """Nothing to add; no running login nodes otherwise."""
    ALL_STOPPED = "all_stopped"
    """A stopped fleet and no running login nodes."""
    CHEF = "chef"
    """Nothing for three attributes of the cookbook; not possible for the others."""
    NEVER = "never"
    """Not possible: it takes a new cluster."""


FORMS: Mapping[str, tuple[re.Pattern[str], str]] = {
    "access_point": (re.compile(r"fsap-[0-9a-z]{17}"), "fsap- and 17 letters and digits"),
    "backup": (re.compile(r"backup-[0-9a-f]{8,}"), "backup- and hexadecimal digits"),
    "bucket": (re.compile(r"[*a-z0-9.-]+"), "the name of a bucket"),
    "directory": (re.compile(r"/?[^/.\\][^/\\]*(/[^/.\\][^/]*)*"), "a directory whose names start with no dot"),
    "efs": (re.compile(r"fs-([0-9a-z]{8}|[0-9a-z]{17})"), "fs- and 8 or 17 letters and digits"),
    "file_cache": (re.compile(r"fc-[0-9a-f]{8,18}"), "fc- and 8 to 18 hexadecimal digits"),
    "fsx": (re.compile(r"fs-[0-9a-z]{17}"), "fs- and 17 letters and digits"),
    "fsx_volume": (re.compile(r"fsvol-[0-9a-f]{17}"), "fsvol- and 17 hexadecimal digits"),
    "image": (re.compile(r"ami-([0-9a-z]{8}|[0-9a-z]{17})"), "ami- and 8 or 17 letters and digits"),
    "instance_profile_arn": (re.compile(r"arn:.*:instance-profile/.*", re.DOTALL), "the ARN of an instance profile"),
    "path": (re.compile(r"[^\x00\x85\u2028\u2029\r\n]{1,4096}"), "a path of one line"),
    "policy_arn": (re.compile(r"arn:.*:policy/.*", re.DOTALL), "the ARN of a policy"),
    "role_arn": (re.compile(r"arn:.*:role/.*", re.DOTALL), "the ARN of a role"),
    "secret_arn": (re.compile(r"arn:.*:secret.*", re.DOTALL), "the ARN of a secret"),
    "secret_or_parameter_arn": (
        re.compile(r"arn:.*:(secretsmanager:.*:.*:secret:|ssm:.*:.*:parameter/).*"),
        "the ARN of a secret or of a parameter",
    ),
    "security_group": (re.compile(r"sg-([0-9a-z]{8}|[0-9a-z]{17})"), "sg- and 8 or 17 letters and digits"),
    "snapshot": (re.compile(r"snap-([0-9a-z]{8}|[0-9a-z]{17})"), "snap- and 8 or 17 letters and digits"),
    "subnet": (re.compile(r"subnet-([0-9a-z]{8}|[0-9a-z]{17})"), "subnet- and 8 or 17 letters and digits"),
    "time_of_day": (re.compile(r"([01]\d|2[0-3]):[0-5]\d"), "hour and minute, such as 03:00"),
    "time_of_week": (
        re.compile(r"[1-7]:([01]\d|2[0-3]):[0-5]\d"),
        "day (1 is Monday), hour and minute, such as 7:03:00",
    ),
    "volume": (re.compile(r"vol-([0-9a-z]{8}|[0-9a-z]{17})"), "vol- and 8 or 17 letters and digits"),
}
"""What texts look like, as a pattern and in words."""


@dataclass(frozen=True, kw_only=True)
class Key:
    """A key of the file.

    Attributes:
        path: Names of the sections that it stands in and its own, joined by dots; a list adds nothing to it.
        kind: What it holds.
        required: Whether its section must have it.
        values: The values that it may have; any, if empty.
        form: What its text looks like, a key of `FORMS`; anything, if empty.
        least: Least number, or least length of a text or list.
        most: Most likewise.
        on_change: What changing it takes.
    """

    path: str
    kind: Kind
    required: bool
    values: tuple[str, ...]
    form: str
    least: float | None
    most: float | None
    on_change: OnChange

    @property
    def name(self) -> str:
        """Its own name."""
        return self.path.rpartition(".")[2]

    @property
    def section(self) -> str:
        """Path of the section that it stands in; empty for the file itself."""
        return self.path.rpartition(".")[0]


@cache
def keys() -> Mapping[str, Key]:
    """Every key by its path."""
    text = resources.files(__package__).joinpath("keys.csv").read_text(encoding="utf-8")
    return {key.path: key for key in map(_key, csv.DictReader(text.splitlines()))}


@cache
def keys_of(section: str) -> Mapping[str, Key]:
    """The keys of a section by their names; of the file itself for an empty path."""
    return {key.name: key for key in _in_section(section)}


def _in_section(section: str) -> Iterator[Key]:
    return (key for key in keys().values() if key.section == section)


def _key(row: Mapping[str, str]) -> Key:
    return Key(
        path=row["key"],
        kind=Kind(row["kind"]),
        required=row["required"] == "yes",
        values=tuple(row["values"].split()),
        form=row["form"],
        least=float(row["least"]) if row["least"] else None,
        most=float(row["most"]) if row["most"] else None,
        on_change=OnChange(row["on_change"]),
    )
