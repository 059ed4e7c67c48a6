"""Shared storage: what excludes what, sizes, and where it is mounted."""

from __future__ import annotations

from collections.abc import Iterator

from trainfabric_plan.mount_points import OF_PARALLELCLUSTER
from trainfabric_plan.parallelcluster.broken import Broken
from trainfabric_plan.parallelcluster.rule import SCHEMA, VALIDATORS, error, warning
from trainfabric_plan.parallelcluster.view import Cluster, Part

_SETTINGS = {
    "Ebs": "EbsSettings",
    "Efs": "EfsSettings",
    "FsxLustre": "FsxLustreSettings",
    "FsxOpenZfs": "FsxOpenZfsSettings",
    "FsxOntap": "FsxOntapSettings",
    "FileCache": "FileCacheSettings",
}
_BESIDE_AN_EXISTING = {
    "FsxLustreSettings": {"FileSystemId"},
    "EfsSettings": {"FileSystemId", "EncryptionInTransit", "IamAuthorization", "AccessPointId"},
}
_NOT_OF_A_BACKUP = (
    "DeploymentType",
    "PerUnitStorageThroughput",
    "StorageCapacity",
    "ImportPath",
    "ExportPath",
    "ImportedFileChunkSize",
    "KmsKeyId",
)
_THROUGHPUTS = {"PERSISTENT_1": (50, 100, 200), "PERSISTENT_2": (125, 250, 500, 1000)}
MOST_LINKS = 8
MOST_EXISTING = 20
"""Existing file systems of one kind; of those that ParallelCluster makes, there may be one of each kind."""


def _settings(cluster: Cluster) -> Iterator[Broken]:
    for part in cluster.storage:
        wanted = _SETTINGS.get(part.text("StorageType") or "")
        for key in _SETTINGS.values():
            if wanted and part.has(key) and key != wanted:
                rule = f"left out with StorageType {part.text('StorageType')}, whose settings are {wanted}"
                yield Broken(at=part.path(key), rule=rule, got="given")


def _existing(cluster: Cluster) -> Iterator[Broken]:
    for part in cluster.storage:
        for key, beside in _BESIDE_AN_EXISTING.items():
            settings = part.section(key)
            others = sorted(set(settings.raw) - beside) if settings.has("FileSystemId") else []
            if others:
                rule = "alone for a file system that exists: its other properties stay as they are"
                yield Broken(at=settings.path("FileSystemId"), rule=rule, got=f"beside {', '.join(others)}")


def _backups(cluster: Cluster) -> Iterator[Broken]:
    for settings in _lustre(cluster):
        days, of_backup = settings.whole("AutomaticBackupRetentionDays"), settings.has("BackupId")
        for key in _NOT_OF_A_BACKUP if of_backup else ():
            if settings.has(key):
                yield Broken(at=settings.path(key), rule="left out with BackupId, which brings its own", got="given")
        for key in ("DailyAutomaticBackupStartTime", "CopyTagsToBackups"):
            if settings.has(key) and not settings.has("AutomaticBackupRetentionDays"):
                yield Broken(at=settings.path(key), rule="given with AutomaticBackupRetentionDays", got="alone")
        if days and not (settings.text("DeploymentType") or "SCRATCH").startswith("PERSISTENT"):
            at = settings.path("AutomaticBackupRetentionDays")
            yield Broken(at=at, rule="left out for scratch file systems, which FSx does not back up", got=str(days))


def _made(cluster: Cluster) -> Iterator[Broken]:
    for settings in _lustre(cluster):
        if settings.has("FileSystemId") or settings.has("BackupId"):
            continue
        yield from _capacity(settings)
        yield from _throughput(settings)


def _capacity(settings: Part) -> Iterator[Broken]:
    at, size, kind = settings.path("StorageCapacity"), settings.whole("StorageCapacity"), _deployment(settings)
    if not settings.has("StorageCapacity"):
        yield Broken(at=at, rule="given, or FileSystemId for a file system that exists", got="nothing")
    elif size is not None and settings.text("StorageType") != "HDD":
        step = 3600 if kind == "SCRATCH_1" else 2400
        fits = size in (1200, 2400) or (size > 0 and size % step == 0)
        if kind is not None and not fits:
            yield Broken(at=at, rule=f"1200, 2400 or a multiple of {step} GiB for {kind}", got=str(size))


def _throughput(settings: Part) -> Iterator[Broken]:
    at, kind = settings.path("PerUnitStorageThroughput"), _deployment(settings)
    given, speeds = settings.whole("PerUnitStorageThroughput"), _THROUGHPUTS.get(kind or "")
    if settings.text("StorageType") == "HDD" or kind is None:
        return
    if speeds and not settings.has("PerUnitStorageThroughput"):
        yield Broken(at=at, rule=f"given for {kind}: {', '.join(map(str, speeds))} MB/s per TiB", got="nothing")
    elif speeds and given is not None and given not in speeds:
        yield Broken(at=at, rule=f"{', '.join(map(str, speeds))} MB/s per TiB for {kind}", got=str(given))
    elif not speeds and settings.has("PerUnitStorageThroughput"):
        yield Broken(at=at, rule=f"left out for {kind}", got=str(given))


def _deployment(settings: Part) -> str | None:
    """ParallelCluster asks FSx for SCRATCH_2 where nothing else is said."""
    return settings.text("DeploymentType") if settings.has("DeploymentType") else "SCRATCH_2"


def _links(cluster: Cluster) -> Iterator[Broken]:
    for settings in _lustre(cluster):
        at, links = settings.path("DataRepositoryAssociations"), settings.count("DataRepositoryAssociations")
        if links > MOST_LINKS:
            yield Broken(at=at, rule=f"at most {MOST_LINKS} for one file system", got=str(links))
        for key in ("ImportPath", "ExportPath"):
            if links and settings.has(key):
                remedy = "keep the associations"
                rule = "left out beside DataRepositoryAssociations: FSx takes one way to link or the other"
                yield Broken(at=settings.path(key), rule=rule, got=str(settings.get(key)), remedy=remedy)


def _mount_dirs(cluster: Cluster) -> Iterator[Broken]:
    seen: dict[str, str] = {}
    for part in cluster.storage:
        mount = part.text("MountDir")
        if mount is None:
            continue
        at, path = part.path("MountDir"), f"/{mount.strip('/')}"
        if path in OF_PARALLELCLUSTER:
            yield Broken(at=at, rule="a directory that the system does not use", got=mount, remedy="use /fsx")
        for other, where in seen.items():
            if path == other or path.startswith(f"{other}/") or other.startswith(f"{path}/"):
                yield Broken(at=at, rule=f"apart from that of {where}: one hides the other", got=mount)
        seen[path] = part.at


def _numbers(cluster: Cluster) -> Iterator[Broken]:
    for kind, key in (("FsxLustre", "FsxLustreSettings"), ("Efs", "EfsSettings")):
        of_kind = [part for part in cluster.storage if part.text("StorageType") == kind]
        existing = sum(part.has(key, "FileSystemId") for part in of_kind)
        if existing > MOST_EXISTING:
            rule = f"at most {MOST_EXISTING} of type {kind} that exist already"
            yield Broken(at="SharedStorage", rule=rule, got=str(existing))
        if len(of_kind) - existing > 1:
            rule = f"at most 1 of type {kind} that ParallelCluster makes"
            yield Broken(at="SharedStorage", rule=rule, got=str(len(of_kind) - existing))


def _lost_data(cluster: Cluster) -> Iterator[Broken]:
    for part in cluster.storage:
        for key in ("FsxLustreSettings", "EfsSettings", "EbsSettings"):
            settings = part.section(key)
            made = part.has("StorageType") and _SETTINGS.get(part.text("StorageType") or "") == key
            if made and not _exists(settings) and settings.text("DeletionPolicy") in (None, "Delete"):
                rule = "Retain: the data goes when the cluster goes, and a new release is a new cluster"
                remedy = "make the file system outside of the cluster and give its id, or set DeletionPolicy: Retain"
                got = settings.text("DeletionPolicy") or "nothing"
                yield Broken(at=settings.path("DeletionPolicy"), rule=rule, got=got, remedy=remedy)


def _exists(settings: Part) -> bool:
    return settings.has("FileSystemId") or settings.has("VolumeId")


def _lustre(cluster: Cluster) -> Iterator[Part]:
    return (part.section("FsxLustreSettings") for part in cluster.storage if part.text("StorageType") == "FsxLustre")


RULES = (
    error(
        "pcluster-storage-settings",
        _settings,
        title="Shared storage has the settings of its type",
        why="The schema refuses settings of another type.",
        source=SCHEMA,
    ),
    error(
        "pcluster-existing-storage",
        _existing,
        title="Storage that exists is given by its id alone",
        why="The schema refuses what would be ignored.",
        source=SCHEMA,
    ),
    error("pcluster-backups", _backups, title="Backups are those that FSx makes", why="FSx refuses the combination."),
    error(
        "pcluster-lustre-size",
        _made,
        title="Lustre has a size and a throughput that FSx makes",
        why="FSx makes file systems in steps.",
    ),
    error(
        "pcluster-lustre-links",
        _links,
        title="Lustre has at most 8 associations, and no other way of linking",
        why="FSx refuses the combination.",
    ),
    error(
        "pcluster-mount-directories",
        _mount_dirs,
        title="Mounts hide neither one another nor the system",
        why="One mount hides the other, or files of the system.",
    ),
    error(
        "pcluster-storage-counts",
        _numbers,
        title="There is no more shared storage than ParallelCluster takes",
        why="ParallelCluster refuses more.",
    ),
    warning(
        "pcluster-storage-deleted",
        _lost_data,
        title="Shared storage outlives the cluster",
        why="File systems of the cluster are deleted with it by default; a release is upgraded by a new cluster.",
        source=VALIDATORS,
    ),
)
