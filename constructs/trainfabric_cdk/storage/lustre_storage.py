"""The kinds of file system that FSx for Lustre makes, with the properties that each has."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

from constructs import IConstruct

from trainfabric_cdk.errors import is_known, is_whole_number
from trainfabric_plan.errors import Mistake
from trainfabric_plan.lustre import LustreWish, lustre_mistakes


class LustreStorage:
    """What a file system is made of; each kind takes exactly the properties that FSx gives it.

    Attributes:
        wish: What was asked for.
    """

    def __init__(self, wish: LustreWish) -> None:
        self.wish = wish

    @staticmethod
    def persistent_2(
        *,
        capacity_gib: int | None = None,
        required_throughput_mbps: int | None = None,
        throughput_mbps_per_tib: int | None = None,
        metadata_iops: int | None = None,
        efa: bool = False,
    ) -> LustreStorage:
        """PERSISTENT_2 on SSD: replicated in its zone, file servers replaced when they fail.

        Args:
            capacity_gib: 1200, or a multiple of 2400; with `efa` a multiple of 38400, 19200, 9600 or 4800 by the
                throughput per TiB. The smallest there is if neither it nor a required throughput is given.
            required_throughput_mbps: MB/s that the nodes read together; the smallest size that gives it is chosen.
            throughput_mbps_per_tib: 125 (if not given), 250, 500 or 1000.
            metadata_iops: 1500, 3000, 6000, or a multiple of 12000 up to 192000; with the storage if not given.
            efa: Lustre over EFA, with GPUDirect Storage. Only when created.
        """
        return LustreStorage(
            LustreWish(
                deployment="persistent_2",
                capacity_gib=capacity_gib,
                required_throughput_mbps=required_throughput_mbps,
                throughput_mbps_per_tib=throughput_mbps_per_tib,
                metadata_iops=metadata_iops,
                efa=efa,
            )
        )

    @staticmethod
    def intelligent_tiering(
        *,
        throughput_mbps: int | None = None,
        required_throughput_mbps: int | None = None,
        read_cache_gib: int | None = None,
        metadata_iops: int | None = None,
        efa: bool = False,
    ) -> LustreStorage:
        """PERSISTENT_2 that grows and shrinks with its files, on several zones; FSx links it to no bucket.

        Args:
            throughput_mbps: 1000, 2000 or a multiple of 4000.
            required_throughput_mbps: Instead of it: the smallest of these steps that gives so much.
            read_cache_gib: SSD read cache, 8 to 32768 GiB for every 1000 MB/s; in proportion to them if not given.
            metadata_iops: 6000 (if not given), or a multiple of 12000 up to 192000.
            efa: Lustre over EFA; needs a multiple of 4000 MB/s. Only when created.
        """
        return LustreStorage(
            LustreWish(
                deployment="intelligent_tiering",
                throughput_mbps=throughput_mbps,
                required_throughput_mbps=required_throughput_mbps,
                read_cache_gib=read_cache_gib,
                metadata_iops=metadata_iops,
                efa=efa,
            )
        )

    @staticmethod
    def scratch_2(*, capacity_gib: int | None = None, required_throughput_mbps: int | None = None) -> LustreStorage:
        """SCRATCH_2: not replicated, files are lost when a file server fails; 200 MB/s per TiB, always.

        Args:
            capacity_gib: 1200, or a multiple of 2400.
            required_throughput_mbps: Instead of it: the smallest size that gives so much.
        """
        return LustreStorage(
            LustreWish(
                deployment="scratch_2",
                capacity_gib=capacity_gib,
                required_throughput_mbps=required_throughput_mbps,
            )
        )


def asked(
    storage: LustreStorage | None,
    *,
    capacity_gib: int | None,
    throughput_mbps_per_tib: int | None,
    compression: Literal["lz4", "none"],
    maintenance_window: str | None,
) -> LustreWish:
    """The wish of a file system's properties: of `storage`, or of the two that stand for a PERSISTENT_2."""
    wish = storage.wish if storage else LustreWish()
    flat = {"capacity_gib": capacity_gib, "throughput_mbps_per_tib": throughput_mbps_per_tib}
    given: dict[str, Any] = {name: value for name, value in flat.items() if value is not None}
    return replace(wish, **given, compression=compression, maintenance_window=maintenance_window)


def wish_mistakes(scope: IConstruct, wish: LustreWish) -> list[Mistake]:
    """Every rule that the known values of a wish break; sizes that are settled at deploy time are not judged."""
    where = scope.node.path
    found = [
        Mistake(where=where, name=name, rule="a whole number", got=repr(value))
        for name, value in wish.given_sizes.items()
        if is_known(value) and not is_whole_number(value)
    ]
    if not is_known(wish.required_throughput_mbps):
        rule = "known at synthesis: the size follows from it"
        found.append(Mistake(where=where, name="required_throughput_mbps", rule=rule, got="a token"))
    return found + lustre_mistakes(where, judged(wish))


def judged(wish: LustreWish) -> LustreWish:
    """The wish without what cannot be judged: tokens, and values of a wrong kind, which are said already.

    Nothing stands for them, or, where FSx needs a value, one that it accepts.
    """
    unknown = {name for name, value in wish.given_sizes.items() if not is_known(value) or not is_whole_number(value)}
    changes: dict[str, Any] = {name: _STAND_INS.get(name) for name in unknown}
    for name in ("compression", "maintenance_window"):
        if not is_known(getattr(wish, name)):
            changes[name] = _STAND_INS.get(name)
    return replace(wish, **changes)


_STAND_INS = {"throughput_mbps": 4000, "required_throughput_mbps": 1000, "compression": "lz4"}
