"""What FSx for Lustre accepts for PERSISTENT_2 SSD file systems.

Source: FSx API reference, CreateFileSystem (StorageCapacity, PerUnitStorageThroughput), as in botocore 1.44.8.
"""

from __future__ import annotations

from trainfabric_plan.errors import Mistake

THROUGHPUTS_MBPS_PER_TIB = (125, 250, 500, 1000)
SMALLEST_GIB = 1200
STEP_GIB = 2400


def lustre_mistakes(where: str, capacity_gib: int, throughput_mbps_per_tib: int, *, prefix: str = "") -> list[Mistake]:
    """Every rule of FSx that this size breaks; `prefix` goes before the names of the two values."""
    mistakes = []
    if capacity_gib != SMALLEST_GIB and (capacity_gib <= 0 or capacity_gib % STEP_GIB):
        mistakes.append(
            Mistake(
                where=where,
                name=f"{prefix}capacity_gib",
                rule=f"{SMALLEST_GIB} or a multiple of {STEP_GIB} GiB",
                got=str(capacity_gib),
                remedy=f"use {nearest_capacity_gib(capacity_gib)}",
            )
        )
    if throughput_mbps_per_tib not in THROUGHPUTS_MBPS_PER_TIB:
        mistakes.append(
            Mistake(
                where=where,
                name=f"{prefix}throughput_mbps_per_tib",
                rule=f"one of {', '.join(map(str, THROUGHPUTS_MBPS_PER_TIB))} MB/s per TiB",
                got=str(throughput_mbps_per_tib),
                remedy=f"use {min(THROUGHPUTS_MBPS_PER_TIB, key=lambda known: abs(known - throughput_mbps_per_tib))}",
            )
        )
    return mistakes


def nearest_capacity_gib(capacity_gib: int) -> int:
    """The smallest capacity that FSx accepts and that holds this much."""
    return SMALLEST_GIB if capacity_gib <= SMALLEST_GIB else -(-capacity_gib // STEP_GIB) * STEP_GIB
