"""What somebody asks of a file system; nothing in it is worked out."""

from __future__ import annotations

from dataclasses import dataclass

from trainfabric_plan.lustre.facts import Deployment


@dataclass(frozen=True, kw_only=True)
class LustreWish:
    """The properties of a file system as they were given; `None` where nothing was.

    Attributes:
        deployment: `persistent_2` (SSD), `intelligent_tiering` or `scratch_2`.
        capacity_gib: Size, for those that have one.
        required_throughput_mbps: MB/s that the nodes read together, instead of a size.
        throughput_mbps_per_tib: Of `persistent_2`: 125, 250, 500 or 1000.
        throughput_mbps: Of `intelligent_tiering`: 1000, 2000 or a multiple of 4000.
        read_cache_gib: SSD read cache of `intelligent_tiering`.
        metadata_iops: Metadata operations per second.
        efa: Lustre over EFA, with GPUDirect Storage.
        maintenance_window: `d:HH:MM`, weekly, UTC.
        compression: `lz4` or `none`.
    """

    deployment: Deployment = "persistent_2"
    capacity_gib: int | None = None
    required_throughput_mbps: int | None = None
    throughput_mbps_per_tib: int | None = None
    throughput_mbps: int | None = None
    read_cache_gib: int | None = None
    metadata_iops: int | None = None
    efa: bool = False
    maintenance_window: str | None = None
    compression: str = "lz4"

    @property
    def given_sizes(self) -> dict[str, int]:
        """The sizes that were given, by name."""
        names = (
            "capacity_gib",
            "required_throughput_mbps",
            "throughput_mbps_per_tib",
            "throughput_mbps",
            "read_cache_gib",
            "metadata_iops",
        )
        return {name: value for name in names if (value := getattr(self, name)) is not None}
