"""FSx for Lustre: the rules of its sizes, those of `trainfabric_plan.lustre`, over a template's properties."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from trainfabric_plan.lint.assembly import Assembly
from trainfabric_plan.lint.model import Broken, Rule, Severity
from trainfabric_plan.lint.rules.lustre import associations, configuration, file_systems
from trainfabric_plan.lint.values import Resource, Value
from trainfabric_plan.lustre import Deployment, LustreWish, lustre_mistakes
from trainfabric_plan.lustre.facts import MOST_GIB, MOST_LINKS, QUOTA_GIB

_WORDS: Mapping[str, str] = MappingProxyType(
    {
        "throughput_mbps_per_tib": "PerUnitStorageThroughput",
        "throughput_mbps": "ThroughputCapacity",
        "capacity_gib": "StorageCapacity",
        "read_cache_gib": "DataReadCacheConfiguration.SizeGiB",
        "metadata_iops": "MetadataConfiguration.Iops",
        "maintenance_window": "WeeklyMaintenanceStartTime",
        "with efa": "with EfaEnabled",
        "persistent_2": "PERSISTENT_2",
        "intelligent_tiering": "INTELLIGENT_TIERING",
        "scratch_2": "SCRATCH_2",
    }
)
"""What our names are called in a template; longer ones first, as some begin with others."""


def _broken_sizes(assembly: Assembly) -> Iterator[Broken]:
    for file_system in file_systems(assembly):
        deployment = _deployment(file_system)
        if deployment is None or not file_system.properties("BackupId").is_missing:
            continue  # a backup has a size of its own, and other kinds have other rules
        values = _values(file_system)
        yield from _missing(values, deployment)
        for mistake in lustre_mistakes("", _wish(values, deployment)):
            at = values.get(mistake.name)
            if at is not None and not at.is_missing:
                remedy = mistake.remedy or "see the FSx API reference"
                yield Broken(at=at, must=_in_words(mistake.rule), got=mistake.got, remedy=_in_words(remedy))


def _beyond_the_quota(assembly: Assembly) -> Iterator[Broken]:
    for file_system in file_systems(assembly):
        capacity = file_system.properties("StorageCapacity")
        if capacity.whole is not None and QUOTA_GIB < capacity.whole <= MOST_GIB:
            yield Broken(
                at=capacity,
                must=f"at most {QUOTA_GIB} GiB, unless the account's quota has been raised",
                got=capacity.whole,
                remedy="ask AWS Support for more storage for file systems in this region before the deploy",
            )


def _too_many_links(assembly: Assembly) -> Iterator[Broken]:
    for file_system in file_systems(assembly):
        links = associations(assembly, file_system)
        most = 0 if _deployment(file_system) == "intelligent_tiering" else MOST_LINKS
        if len(links) > most:
            yield Broken(
                at=links[most].properties("FileSystemId"),
                must=f"one of at most {most} associations of {file_system.id}" if most else _NOT_TIERED,
                got=len(links) if most else file_system.id,
                remedy="link fewer directories, or a common parent of them" if most else "copy the data to it",
            )


_NOT_TIERED = "a file system on SSD: FSx links INTELLIGENT_TIERING to no bucket"


def _deployment(file_system: Resource) -> Deployment | None:
    kind, storage = configuration(file_system, "DeploymentType"), file_system.properties("StorageType")
    if storage.is_unknown or kind.is_unknown:
        return None
    match kind.text, storage.text:
        case "SCRATCH_2", _:
            return "scratch_2"
        case "PERSISTENT_2", "INTELLIGENT_TIERING":
            return "intelligent_tiering"
        case "PERSISTENT_2", None | "SSD":
            return "persistent_2"
    return None


def _values(file_system: Resource) -> dict[str, Value]:
    return {
        "capacity_gib": file_system.properties("StorageCapacity"),
        "throughput_mbps_per_tib": configuration(file_system, "PerUnitStorageThroughput"),
        "throughput_mbps": configuration(file_system, "ThroughputCapacity"),
        "read_cache_gib": configuration(file_system, "DataReadCacheConfiguration", "SizeGiB"),
        "metadata_iops": configuration(file_system, "MetadataConfiguration", "Iops"),
        "efa": configuration(file_system, "EfaEnabled"),
        "maintenance_window": configuration(file_system, "WeeklyMaintenanceStartTime"),
    }


def _missing(values: Mapping[str, Value], deployment: Deployment) -> Iterator[Broken]:
    """What FSx does not choose by itself."""
    needed = {
        "persistent_2": {"capacity_gib": "1200", "throughput_mbps_per_tib": "125"},
        "intelligent_tiering": {"throughput_mbps": "4000"},
        "scratch_2": {"capacity_gib": "1200"},
    }
    for name, smallest in needed[deployment].items():
        if values[name].is_missing:
            must, remedy = f"given for {_in_words(deployment)}", f"add it, such as {smallest}"
            yield Broken(at=values[name], must=must, got="nothing", remedy=remedy)


def _wish(values: Mapping[str, Value], deployment: Deployment) -> LustreWish:
    """What the template asks for as far as it is known; the rest is left to what is given by itself."""
    throughput = values["throughput_mbps"]
    unsaid = deployment == "intelligent_tiering" and throughput.whole is None
    unknown_step = values["throughput_mbps_per_tib"].is_unknown and values["efa"].truth is True
    return LustreWish(
        deployment=deployment,
        capacity_gib=None if unknown_step else values["capacity_gib"].whole,
        throughput_mbps_per_tib=values["throughput_mbps_per_tib"].whole,
        throughput_mbps=None if unsaid else throughput.whole,
        read_cache_gib=values["read_cache_gib"].whole,
        metadata_iops=values["metadata_iops"].whole,
        efa=values["efa"].truth is True,
        maintenance_window=values["maintenance_window"].text,
    )


def _in_words(text: str) -> str:
    for ours, theirs in _WORDS.items():
        text = text.replace(ours, theirs)
    return text


RULES = (
    Rule(
        id="lustre-size",
        severity=Severity.ERROR,
        title="A file system has a size, a throughput and metadata operations that FSx makes",
        why="FSx refuses others, minutes into the deploy.",
        source="FSx API model of botocore 1.44.8, CreateFileSystem; FSx for Lustre user guide, "
        "increase-storage-capacity, read 2026-11",
        check=_broken_sizes,
    ),
    Rule(
        id="lustre-associations-too-many",
        severity=Severity.ERROR,
        title="A file system has at most eight data repository associations, and none with INTELLIGENT_TIERING",
        why="FSx refuses others, after the file system has been made.",
        source="FSx API model of botocore 1.44.8, CreateDataRepositoryAssociation and DataRepositoryAssociation",
        check=_too_many_links,
    ),
    Rule(
        id="lustre-quota",
        severity=Severity.WARNING,
        title="A file system is not larger than what an account has before its quota is raised",
        why="FSx refuses what is beyond the quota, which holds for all file systems of a region together.",
        source="FSx for Lustre user guide, limits, as in awsdocs/amazon-fsx-lustre-user-guide (2023); "
        "https://github.com/aws-cloudformation/cfn-lint/pull/4708, read 2026-11",
        check=_beyond_the_quota,
    ),
)
