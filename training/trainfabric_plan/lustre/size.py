"""The file system that follows from a wish, with the reasons for its size."""

from __future__ import annotations

from dataclasses import dataclass

from trainfabric_plan.errors import InvalidInput
from trainfabric_plan.lustre.facts import (
    DEFAULT_MBPS_PER_TIB,
    EFA_STEP_GIB,
    QUOTA_GIB,
    SCRATCH_MBPS_PER_TIB,
    SMALLEST_GIB,
    STEP_GIB,
    THROUGHPUTS_MBPS_PER_TIB,
    TIERING_LEAST_METADATA_IOPS,
)
from trainfabric_plan.lustre.rules import (
    capacity_for,
    lustre_mistakes,
    nearest_capacity_gib,
    nearest_tiering_mbps,
    throughput_mbps,
)
from trainfabric_plan.lustre.wish import LustreWish


@dataclass(frozen=True, kw_only=True)
class LustreSize:
    """The sizes of a file system that FSx accepts.

    Attributes:
        deployment_type: FSx's DeploymentType.
        storage_type: FSx's StorageType.
        capacity_gib: StorageCapacity; `None` for INTELLIGENT_TIERING, which has none.
        throughput_mbps_per_tib: PerUnitStorageThroughput of PERSISTENT_2 on SSD.
        throughput_capacity_mbps: ThroughputCapacity of INTELLIGENT_TIERING.
        read_cache_gib: SSD read cache of INTELLIGENT_TIERING; `None` for one in proportion to the throughput.
        metadata_iops: Metadata operations per second; `None` where FSx sets them by the size.
        metadata_configured: Whether the file system has a metadata configuration; none can be added later.
        efa: Whether it is EFA-enabled.
        throughput_mbps: MB/s that all nodes read together from disk.
        reasons: Why it is of this size, in words.
    """

    deployment_type: str
    storage_type: str = "SSD"
    capacity_gib: int | None = None
    throughput_mbps_per_tib: int | None = None
    throughput_capacity_mbps: int | None = None
    read_cache_gib: int | None = None
    metadata_iops: int | None = None
    metadata_configured: bool = False
    efa: bool = False
    throughput_mbps: int
    reasons: tuple[str, ...] = ()

    @property
    def beyond_the_quota(self) -> str | None:
        """What is asked beyond the quota of an account that AWS raised nothing for, in one sentence, or `None`."""
        if self.capacity_gib is None or self.capacity_gib <= QUOTA_GIB:
            return None
        return (
            f"a file system of {self.capacity_gib} GiB is larger than the {QUOTA_GIB} GiB that an account has in a "
            "region before its quota is raised, less in some: ask AWS Support for more first, or FSx refuses it"
        )

    @property
    def in_words(self) -> str:
        """Size and throughput in one phrase, such as `1200 GiB at 125 MB/s per TiB`."""
        if self.throughput_capacity_mbps is not None:
            return f"Intelligent-Tiering at {self.throughput_capacity_mbps} MB/s"
        if self.throughput_mbps_per_tib is None:
            return f"scratch {self.capacity_gib} GiB at {SCRATCH_MBPS_PER_TIB} MB/s per TiB"
        return f"{self.capacity_gib} GiB at {self.throughput_mbps_per_tib} MB/s per TiB"


def lustre_size(wish: LustreWish, where: str = "file system") -> LustreSize:
    """The smallest file system that gives what was asked.

    Without a size or a required throughput it is the smallest there is. A required throughput without one per TiB gives
    the least capacity, then the least throughput per TiB, that reaches it.

    Raises:
        InvalidInput: If FSx would refuse the wish, with every mistake.
    """
    mistakes = lustre_mistakes(where, wish)
    if mistakes:
        raise InvalidInput(mistakes)
    match wish.deployment:
        case "persistent_2":
            return _persistent(wish)
        case "intelligent_tiering":
            return _tiering(wish)
        case "scratch_2":
            return _scratch(wish)


def _persistent(wish: LustreWish) -> LustreSize:
    per_tib = wish.throughput_mbps_per_tib
    if wish.required_throughput_mbps is not None:
        tiers = THROUGHPUTS_MBPS_PER_TIB if per_tib is None else (per_tib,)
        found = [(capacity_for(wish.required_throughput_mbps, tier, efa=wish.efa), tier) for tier in tiers]
        capacity, tier = min(found)
        reasons = _reasons(wish.required_throughput_mbps, capacity, tier, efa=wish.efa, chosen=per_tib is None)
    else:
        tier = per_tib or DEFAULT_MBPS_PER_TIB
        capacity, reasons = _given_or_smallest(wish.capacity_gib, tier if wish.efa else None)
    return LustreSize(
        deployment_type="PERSISTENT_2",
        capacity_gib=capacity,
        throughput_mbps_per_tib=tier,
        metadata_iops=wish.metadata_iops,
        metadata_configured=wish.efa or wish.metadata_iops is not None,
        efa=wish.efa,
        throughput_mbps=throughput_mbps(capacity, tier),
        reasons=reasons,
    )


def _scratch(wish: LustreWish) -> LustreSize:
    if wish.required_throughput_mbps is not None:
        capacity = capacity_for(wish.required_throughput_mbps, SCRATCH_MBPS_PER_TIB, efa=False)
        reasons = _reasons(wish.required_throughput_mbps, capacity, SCRATCH_MBPS_PER_TIB, efa=False, chosen=False)
    else:
        capacity, reasons = _given_or_smallest(wish.capacity_gib, None)
    return LustreSize(
        deployment_type="SCRATCH_2",
        capacity_gib=capacity,
        throughput_mbps=throughput_mbps(capacity, SCRATCH_MBPS_PER_TIB),
        reasons=reasons,
    )


def _tiering(wish: LustreWish) -> LustreSize:
    asked = wish.throughput_mbps or wish.required_throughput_mbps or 0
    throughput = nearest_tiering_mbps(asked, efa=wish.efa)
    given = wish.throughput_mbps is not None
    reason = "as given" if given else f"the smallest step that reaches the {asked} MB/s required"
    return LustreSize(
        deployment_type="PERSISTENT_2",
        storage_type="INTELLIGENT_TIERING",
        throughput_capacity_mbps=throughput,
        read_cache_gib=wish.read_cache_gib,
        metadata_iops=wish.metadata_iops or TIERING_LEAST_METADATA_IOPS,
        metadata_configured=True,
        efa=wish.efa,
        throughput_mbps=throughput,
        reasons=(f"{throughput} MB/s: {reason}",),
    )


def _given_or_smallest(capacity_gib: int | None, efa_mbps_per_tib: int | None) -> tuple[int, tuple[str, ...]]:
    if capacity_gib is not None:
        return capacity_gib, (f"{capacity_gib} GiB: as given",)
    smallest = nearest_capacity_gib(0, efa_mbps_per_tib)
    return smallest, (f"{smallest} GiB: the smallest there is, as no size and no throughput was asked for",)


def _reasons(required_mbps: int, capacity: int, tier: int, *, efa: bool, chosen: bool) -> tuple[str, ...]:
    reads = throughput_mbps(capacity, tier)
    step = EFA_STEP_GIB[tier] if efa else STEP_GIB
    reasons = [f"{capacity} GiB at {tier} MB/s per TiB read {reads} MB/s, at least the {required_mbps} required"]
    less = SMALLEST_GIB if not efa and capacity == STEP_GIB else capacity - step
    if less > 0:
        reasons.append(f"the next smaller, {less} GiB, would read {throughput_mbps(less, tier)} MB/s")
    if chosen:
        reasons.append(f"{tier} MB/s per TiB: the least with which no smaller capacity does")
    return tuple(reasons)
