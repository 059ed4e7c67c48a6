"""What it takes to change the configuration of a live cluster.

The rules are those of `pcluster/config/update_policy.py` of aws-parallelcluster 3.16.1 for a cluster whose nodes are
up, which is when an update hurts; `tests/oracle` holds them to that package.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from trainfabric_plan.parallelcluster.keys import Key, Kind, OnChange, keys_of
from trainfabric_plan.parallelcluster.numbers import as_number
from trainfabric_plan.parallelcluster.view import MOST_NODES_BY_DEFAULT, Part

_NAMED_BY = ("Name", "BucketName", "Policy", "Key", "InstanceType")
"""Keys by which the schema tells entries of a list."""


class Takes(StrEnum):
    """What a change takes, mildest first."""

    NOTHING = "nothing"
    """It is taken while jobs run."""
    DRAIN = "drain"
    """Nodes of the queue come anew: each when its job has ended (DRAIN), or at once (TERMINATE)."""
    STOP = "stop"
    """The compute fleet or the login nodes have to be stopped first. CloudFormation stops neither: its update fails."""
    NEW_CLUSTER = "new cluster"
    """It is not possible in place."""


_WORDS = {
    Takes.NOTHING: "is taken while jobs run",
    Takes.DRAIN: "replaces the queue's nodes, each when its job has ended",
    Takes.STOP: "needs stopped nodes first (pcluster update-compute-fleet): a deploy fails before that",
    Takes.NEW_CLUSTER: "is not possible in place: it takes a new cluster, and a deploy fails",
}


@dataclass(frozen=True, kw_only=True)
class Change:
    """One change.

    Attributes:
        at: Path of the key, entries of lists by their names.
        before: What stood there; `None` if nothing did.
        after: What stands there now.
        takes: What it takes.
    """

    at: str
    before: Any
    after: Any
    takes: Takes

    def __str__(self) -> str:
        return f"{self.at}: the change {_WORDS[self.takes]}"


@dataclass(frozen=True)
class _Update:
    """The two configurations, and what of the whole decides about one change."""

    before: Part
    after: Part

    @property
    def strategy(self) -> str:
        return self.after.text("Scheduling", "SlurmSettings", "QueueUpdateStrategy") or "COMPUTE_FLEET_STOP"

    @property
    def replaces(self) -> Takes:
        """What a change below a queue takes."""
        return Takes.STOP if self.strategy == "COMPUTE_FLEET_STOP" else Takes.DRAIN

    @property
    def removes(self) -> Takes:
        return Takes.DRAIN if self.strategy == "TERMINATE" else Takes.STOP

    @property
    def keeps_own_lustre(self) -> bool:
        """Whether a Lustre file system that ParallelCluster made is there before and after."""
        return bool(_own_lustre(self.before) & _own_lustre(self.after))


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[Change, ...]:
    """Every change of a configuration, with what it takes on a cluster whose nodes are up."""
    update = _Update(Part("", before), Part("", after))
    return tuple(_section(update, update.before, update.after, ""))


def _section(update: _Update, before: Part, after: Part, section: str) -> Iterator[Change]:
    for key in keys_of(section).values():
        old, new = before.raw.get(key.name), after.raw.get(key.name)
        if key.kind is Kind.SECTIONS:
            yield from _entries(update, before, after, key)
        elif key.kind is Kind.SECTION and (_is_inside(old, new) or (key.on_change is OnChange.LIVE and (old or new))):
            yield from _section(update, before.section(key.name), after.section(key.name), key.path)
        elif _plain(old) != _plain(new):
            takes = _takes(update, key, before, after, old, new)
            yield Change(at=after.path(key.name), before=old, after=new, takes=takes)


def _is_inside(old: object, new: object) -> bool:
    return isinstance(old, Mapping) and isinstance(new, Mapping)


def _entries(update: _Update, before: Part, after: Part, key: Key) -> Iterator[Change]:
    olds, news = _by_name(before, key), _by_name(after, key)
    for name in dict.fromkeys((*olds, *news)):
        old, new = olds.get(name), news.get(name)
        if old and new:
            yield from _section(update, old, new, key.path)
            continue
        one = old or new
        assert one is not None
        takes = _entry_takes(update, key, added=old is None, entry=one)
        yield Change(at=one.at, before=old.raw if old else None, after=new.raw if new else None, takes=takes)


def _by_name(part: Part, key: Key) -> dict[str, Part]:
    found = {}
    for one in part.parts(key.name):
        name = next((one.raw[known] for known in _NAMED_BY if known in one.raw), one.at)
        found[str(name)] = Part(f"{part.path(key.name)}[{name}]", one.raw)
    return found


def _entry_takes(update: _Update, key: Key, *, added: bool, entry: Part) -> Takes:
    """What it takes to add or remove an entry of a list."""
    if_removed = (OnChange.QUEUE_IF_REMOVED, OnChange.FLEET_STOPPED_IF_REMOVED, OnChange.LOGIN_STOPPED_IF_REMOVED)
    if added and key.on_change in if_removed:
        return Takes.NOTHING
    if key.on_change is OnChange.QUEUE_IF_REMOVED:
        return update.removes
    if key.on_change is OnChange.MOUNT:
        return _mount(update, entry)
    return _of_policy(update, key)


def _mount(update: _Update, entry: Part) -> Takes:
    """Existing EFS and FSx file systems come and go on live nodes, whatever else does not; /home never does."""
    if (entry.text("MountDir") or "").strip("/") == "home":
        return Takes.NEW_CLUSTER
    kind = entry.text("StorageType") or ""
    of_kind = {"Efs": ("EfsSettings", "FileSystemId"), "FsxLustre": ("FsxLustreSettings", "FileSystemId")}
    existing = {"FsxOpenZfs", "FsxOntap", "FileCache"}
    if kind in existing or (kind in of_kind and entry.has(*of_kind[kind])):
        return Takes.NOTHING
    return Takes.STOP if update.after.count("LoginNodes", "Pools") else update.replaces


def _takes(update: _Update, key: Key, before: Part, after: Part, old: Any, new: Any) -> Takes:
    """What a changed value takes."""
    if key.on_change is OnChange.QUEUE_IF_REMOVED:
        return Takes.NOTHING if _grows(key, before, after) else update.removes
    if key.on_change is OnChange.SUBNET:
        return _subnets(update, old, new)
    if key.on_change is OnChange.MOUNT:
        return Takes.NEW_CLUSTER  # release 3.16.1 breaks off with an error of its own at a changed MountDir
    if key.on_change is OnChange.PLACEMENT:
        return Takes.STOP if _is_own_group(old) and not _is_own_group(new) else update.replaces
    return _of_policy(update, key)


def _of_policy(update: _Update, key: Key) -> Takes:
    match key.on_change:
        case OnChange.LIVE | OnChange.LIVE_BUT_IN_ADC:
            return Takes.NOTHING
        case OnChange.QUEUE | OnChange.PLACEMENT | OnChange.SUBNET:
            return update.replaces if key.path.startswith("Scheduling.SlurmQueues") else Takes.STOP
        case OnChange.NEVER | OnChange.CHEF:
            return Takes.NEW_CLUSTER
        case _:
            return Takes.STOP


def _grows(key: Key, before: Part, after: Part) -> bool:
    """Whether nodes are only added: MaxCount is not less, or MinCount rises by no more than it does."""
    most = _number(after, "MaxCount", MOST_NODES_BY_DEFAULT) - _number(before, "MaxCount", MOST_NODES_BY_DEFAULT)
    if key.name == "MaxCount":
        return most >= 0
    least = _number(after, "MinCount", 0) - _number(before, "MinCount", 0)
    return key.name == "MinCount" and most != 0 and most >= least


def _number(part: Part, name: str, otherwise: int) -> float:
    number = as_number(part.get(name))
    return otherwise if number is None else number


def _subnets(update: _Update, old: Any, new: Any) -> Takes:
    if update.keeps_own_lustre:
        return Takes.NEW_CLUSTER
    only_added = isinstance(old, list) and isinstance(new, list) and all(one in new for one in old)
    return Takes.NOTHING if only_added else update.replaces


def _is_own_group(value: object) -> bool:
    """Whether a value is that of a placement group which ParallelCluster makes."""
    if isinstance(value, Mapping):
        return bool(value.get("Enabled")) and not (value.get("Name") or value.get("Id"))
    return str(value).lower() == "true"


def _own_lustre(configuration: Part) -> set[str]:
    return {
        part.text("Name") or ""
        for part in configuration.parts("SharedStorage")
        if part.text("StorageType") == "FsxLustre" and not part.has("FsxLustreSettings", "FileSystemId")
    }


def _plain(value: Any) -> Any:
    """A value as CloudFormation compares it: numbers and truths are text."""
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return str(value).lower() if isinstance(value, bool) else None if value is None else str(value)
