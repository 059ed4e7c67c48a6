"""Every rule of FSx for Lustre about the sizes of a file system, as mistakes that say what to use instead."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from trainfabric_plan.errors import Mistake
from trainfabric_plan.lustre.facts import (
    AUTOMATIC_METADATA_IOPS,
    AUTOMATIC_METADATA_STEP_GIB,
    CACHE_GIB_PER_1000_MBPS,
    COMPRESSIONS,
    DEFAULT_MBPS_PER_TIB,
    DEPLOYMENTS,
    EFA_STEP_GIB,
    MAINTENANCE_PATTERN,
    METADATA_MOST_IOPS,
    METADATA_SMALL_IOPS,
    METADATA_STEP_IOPS,
    MOST_GIB,
    SCRATCH_MBPS_PER_TIB,
    SMALLEST_GIB,
    STEP_GIB,
    THROUGHPUTS_MBPS_PER_TIB,
    TIERING_LEAST_METADATA_IOPS,
    TIERING_MOST_MBPS,
    TIERING_SMALL_MBPS,
    TIERING_STEP_MBPS,
)
from trainfabric_plan.lustre.wish import LustreWish

GIB_PER_TIB = 1024
"""FSx's examples call 2400 GiB 2.4 TiB; counting strictly never promises more than there is."""


@dataclass(frozen=True, kw_only=True)
class _Broken:
    name: str
    rule: str
    got: object
    remedy: str | None = None


def lustre_mistakes(where: str, wish: LustreWish, *, prefix: str = "") -> list[Mistake]:
    """Every rule of FSx that this file system breaks; `prefix` goes before the names of the values."""
    found = [*_misplaced(wish), *_sizes(wish), *_others(wish)]
    return [
        Mistake(where=where, name=prefix + broken.name, rule=broken.rule, got=_shown(broken.got), remedy=broken.remedy)
        for broken in found
    ]


def throughput_mbps(capacity_gib: int, mbps_per_tib: int) -> int:
    """MB/s of a file system on SSD, rounded down."""
    return capacity_gib * mbps_per_tib // GIB_PER_TIB


def nearest_capacity_gib(capacity_gib: int, efa_mbps_per_tib: int | None = None) -> int:
    """The smallest capacity that FSx accepts and that holds this much; with EFA by its MB/s per TiB."""
    if efa_mbps_per_tib is not None:
        step = EFA_STEP_GIB[efa_mbps_per_tib]
        return max(step, -(-capacity_gib // step) * step)
    return SMALLEST_GIB if capacity_gib <= SMALLEST_GIB else -(-capacity_gib // STEP_GIB) * STEP_GIB


def capacity_for(required_mbps: int, mbps_per_tib: int, *, efa: bool) -> int:
    """The smallest capacity that reads this much at so many MB/s per TiB."""
    return nearest_capacity_gib(-(-required_mbps * GIB_PER_TIB // mbps_per_tib), mbps_per_tib if efa else None)


def nearest_tiering_mbps(throughput_mbps: int, *, efa: bool) -> int:
    """The smallest throughput of INTELLIGENT_TIERING that FSx accepts and that gives this much."""
    for small in () if efa else TIERING_SMALL_MBPS:
        if throughput_mbps <= small:
            return small
    return max(TIERING_STEP_MBPS, -(-throughput_mbps // TIERING_STEP_MBPS) * TIERING_STEP_MBPS)


def largest_capacity_gib(efa_mbps_per_tib: int | None = None) -> int:
    """The largest capacity that the API takes; with EFA by its MB/s per TiB."""
    step = STEP_GIB if efa_mbps_per_tib is None else EFA_STEP_GIB[efa_mbps_per_tib]
    return MOST_GIB // step * step


def is_capacity(capacity_gib: int, efa_mbps_per_tib: int | None = None) -> bool:
    """Whether FSx makes a file system of this size; with EFA by its MB/s per TiB."""
    return capacity_gib > 0 and nearest_capacity_gib(capacity_gib, efa_mbps_per_tib) == capacity_gib


_ONLY_FOR = {
    "capacity_gib": ("persistent_2", "scratch_2"),
    "throughput_mbps_per_tib": ("persistent_2",),
    "throughput_mbps": ("intelligent_tiering",),
    "read_cache_gib": ("intelligent_tiering",),
    "metadata_iops": ("persistent_2", "intelligent_tiering"),
}
_WHY_NOT = {
    ("capacity_gib", "intelligent_tiering"): "which grows and shrinks with its files",
    ("throughput_mbps_per_tib", "intelligent_tiering"): "which has a throughput_mbps of its own",
    ("throughput_mbps_per_tib", "scratch_2"): f"which always reads {SCRATCH_MBPS_PER_TIB} MB/s per TiB",
}


def _misplaced(wish: LustreWish) -> Iterator[_Broken]:
    """Values that this kind of file system does not have, and two that say the same."""
    if wish.deployment not in DEPLOYMENTS:
        return
    given = wish.given_sizes
    for name, kinds in _ONLY_FOR.items():
        if name in given and wish.deployment not in kinds:
            why = _WHY_NOT.get((name, wish.deployment), "which has none")
            yield _Broken(
                name=name, rule=f"left out with {wish.deployment}, {why}", got=given[name], remedy=f"remove {name}"
            )
    if wish.efa and wish.deployment == "scratch_2":
        yield _Broken(name="efa", rule="false with scratch_2: FSx offers EFA with PERSISTENT_2 alone", got=True)
    rival = "throughput_mbps" if wish.deployment == "intelligent_tiering" else "capacity_gib"
    if wish.required_throughput_mbps is not None and rival in given:
        yield _Broken(
            name="required_throughput_mbps",
            rule=f"left out when {rival} is given: one follows from the other",
            got=wish.required_throughput_mbps,
            remedy="remove one of them",
        )


def _sizes(wish: LustreWish) -> Iterator[_Broken]:
    match wish.deployment:
        case "persistent_2":
            yield from _persistent(wish)
        case "intelligent_tiering":
            yield from _tiering(wish)
        case "scratch_2":
            yield from _capacity(wish.capacity_gib, None)
            yield from _too_fast(wish.required_throughput_mbps, SCRATCH_MBPS_PER_TIB, None)


def _persistent(wish: LustreWish) -> Iterator[_Broken]:
    per_tib = wish.throughput_mbps_per_tib
    known = per_tib is None or per_tib in THROUGHPUTS_MBPS_PER_TIB
    if known:
        yield from _capacity(wish.capacity_gib, (per_tib or DEFAULT_MBPS_PER_TIB) if wish.efa else None)
    elif not wish.efa:
        yield from _capacity(wish.capacity_gib, None)
    if per_tib is not None and not known:
        yield _Broken(
            name="throughput_mbps_per_tib",
            rule=f"one of {_words(THROUGHPUTS_MBPS_PER_TIB)} MB/s per TiB",
            got=per_tib,
            remedy=f"use {min(THROUGHPUTS_MBPS_PER_TIB, key=lambda one: abs(one - per_tib))}",
        )
    if known:
        fastest = per_tib or max(THROUGHPUTS_MBPS_PER_TIB)
        yield from _too_fast(wish.required_throughput_mbps, fastest, fastest if wish.efa else None)
    wrong = list(_metadata(wish.metadata_iops, METADATA_SMALL_IOPS))
    yield from wrong or (_too_few_metadata_iops(wish) if known else ())


def _capacity(capacity_gib: int | None, efa_mbps_per_tib: int | None) -> Iterator[_Broken]:
    largest = largest_capacity_gib(efa_mbps_per_tib)
    if capacity_gib is not None and capacity_gib > largest:
        rule = f"at most {largest} GiB: FSx takes no larger number"
        yield _Broken(name="capacity_gib", rule=rule, got=capacity_gib, remedy=f"use {largest}")
        return
    if capacity_gib is None or is_capacity(capacity_gib, efa_mbps_per_tib):
        return
    if efa_mbps_per_tib is None:
        rule = f"{SMALLEST_GIB} or a multiple of {STEP_GIB} GiB"
    else:
        rule = f"a multiple of {EFA_STEP_GIB[efa_mbps_per_tib]} GiB with efa at {efa_mbps_per_tib} MB/s per TiB"
    remedy = f"use {nearest_capacity_gib(capacity_gib, efa_mbps_per_tib)}"
    yield _Broken(name="capacity_gib", rule=rule, got=capacity_gib, remedy=remedy)


def _too_fast(required_mbps: int | None, mbps_per_tib: int, efa_mbps_per_tib: int | None) -> Iterator[_Broken]:
    largest = largest_capacity_gib(efa_mbps_per_tib)
    most = throughput_mbps(largest, mbps_per_tib)
    if required_mbps is not None and required_mbps > most:
        rule = f"at most {most} MB/s, what the largest size, {largest} GiB, reads at {mbps_per_tib} MB/s per TiB"
        yield _Broken(name="required_throughput_mbps", rule=rule, got=required_mbps)


def _tiering(wish: LustreWish) -> Iterator[_Broken]:
    throughput = wish.throughput_mbps
    if throughput is None and wish.required_throughput_mbps is None:
        yield _Broken(
            name="throughput_mbps",
            rule="given with intelligent_tiering, which needs a throughput",
            got="nothing",
            remedy="add 1000, 2000 or a multiple of 4000 MB/s",
        )
    if throughput is not None and nearest_tiering_mbps(throughput, efa=wish.efa) != throughput:
        yield _wrong_tiering_mbps("throughput_mbps", throughput, efa=wish.efa)
    for name in ("throughput_mbps", "required_throughput_mbps"):
        if (getattr(wish, name) or 0) > TIERING_MOST_MBPS:
            rule = f"at most {TIERING_MOST_MBPS} MB/s with intelligent_tiering"
            yield _Broken(name=name, rule=rule, got=getattr(wish, name))
    yield from _read_cache(wish)
    yield from _metadata(wish.metadata_iops, (TIERING_LEAST_METADATA_IOPS,))


def _wrong_tiering_mbps(name: str, throughput: int, *, efa: bool) -> _Broken:
    multiple = f"a multiple of {TIERING_STEP_MBPS} MB/s"
    rule = f"{multiple} with efa" if efa else f"{_words(TIERING_SMALL_MBPS)} or {multiple}"
    return _Broken(name=name, rule=rule, got=throughput, remedy=f"use {nearest_tiering_mbps(throughput, efa=efa)}")


def _read_cache(wish: LustreWish) -> Iterator[_Broken]:
    throughput = wish.throughput_mbps or wish.required_throughput_mbps
    if wish.read_cache_gib is None or throughput is None:
        return
    thousands = nearest_tiering_mbps(throughput, efa=wish.efa) // 1000
    least, most = (limit * thousands for limit in CACHE_GIB_PER_1000_MBPS)
    if not least <= wish.read_cache_gib <= most:
        yield _Broken(
            name="read_cache_gib",
            rule=f"from {least} to {most} GiB at {thousands * 1000} MB/s",
            got=wish.read_cache_gib,
            remedy="leave it out for a cache in proportion to the throughput",
        )


def _metadata(iops: int | None, small: tuple[int, ...]) -> Iterator[_Broken]:
    if iops is None or iops in small or (0 < iops <= METADATA_MOST_IOPS and iops % METADATA_STEP_IOPS == 0):
        return
    rule = f"{_words(small)}, or a multiple of {METADATA_STEP_IOPS} up to {METADATA_MOST_IOPS} per second"
    yield _Broken(name="metadata_iops", rule=rule, got=iops, remedy=f"use {_nearest_iops(iops, small)}")


def automatic_metadata_iops(capacity_gib: int) -> int:
    """Metadata operations per second that FSx provides by itself for so much SSD storage, and the least it takes."""
    iops = next(iops for least_gib, iops in AUTOMATIC_METADATA_IOPS if capacity_gib >= least_gib)
    steps = capacity_gib // AUTOMATIC_METADATA_STEP_GIB
    return min(steps * METADATA_STEP_IOPS, METADATA_MOST_IOPS) if iops is None else iops


def _too_few_metadata_iops(wish: LustreWish) -> Iterator[_Broken]:
    """A size that is not known, as one that is settled at deploy time, is not judged."""
    capacity = _capacity_of(wish)
    if wish.metadata_iops is None or capacity is None or capacity <= 0:
        return
    least = automatic_metadata_iops(capacity)
    if wish.metadata_iops < least:
        rule = f"at least {least} per second with {capacity} GiB: FSx takes no fewer than it provides by itself"
        remedy = f"use {least}, or leave it out"
        yield _Broken(name="metadata_iops", rule=rule, got=wish.metadata_iops, remedy=remedy)


def _capacity_of(wish: LustreWish) -> int | None:
    """The SSD capacity that is given, or that a required throughput leads to."""
    if wish.required_throughput_mbps is None:
        return wish.capacity_gib
    tiers = THROUGHPUTS_MBPS_PER_TIB if wish.throughput_mbps_per_tib is None else (wish.throughput_mbps_per_tib,)
    return min(capacity_for(wish.required_throughput_mbps, tier, efa=wish.efa) for tier in tiers)


def _nearest_iops(iops: int, small: tuple[int, ...]) -> int:
    steps = range(METADATA_STEP_IOPS, METADATA_MOST_IOPS + 1, METADATA_STEP_IOPS)
    return next((one for one in (*small, *steps) if one >= iops), METADATA_MOST_IOPS)


def _others(wish: LustreWish) -> Iterator[_Broken]:
    if wish.deployment not in DEPLOYMENTS:
        yield _Broken(name="deployment", rule=f"one of {', '.join(DEPLOYMENTS)}", got=wish.deployment)
    if wish.required_throughput_mbps is not None and wish.required_throughput_mbps < 1:
        yield _Broken(name="required_throughput_mbps", rule="at least 1 MB/s", got=wish.required_throughput_mbps)
    if wish.compression not in COMPRESSIONS:
        yield _Broken(name="compression", rule="lz4 or none", got=wish.compression)
    window = wish.maintenance_window
    if window is not None and not re.fullmatch(MAINTENANCE_PATTERN, window):
        yield _Broken(
            name="maintenance_window",
            rule="d:HH:MM in UTC, with day 1 for Monday",
            got=repr(window),
            remedy="use 7:03:00 for Sunday at three",
        )


def _words(values: tuple[int, ...]) -> str:
    return ", ".join(map(str, values))


def _shown(value: object) -> str:
    return "true" if value is True else str(value)
