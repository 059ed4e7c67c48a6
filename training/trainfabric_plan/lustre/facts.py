"""What FSx for Lustre accepts.

Source, unless a name says otherwise: FSx API reference (CreateFileSystem, CreateDataRepositoryAssociation) as in
botocore 1.44.8, and FSx for Lustre user guide, both read 2026-11.
"""

from __future__ import annotations

from typing import Literal, get_args

Deployment = Literal["persistent_2", "intelligent_tiering", "scratch_2"]
"""The kinds of file system that trainfabric makes. SCRATCH_1 and PERSISTENT_1 are earlier generations of them."""

DEPLOYMENTS: tuple[Deployment, ...] = get_args(Deployment)

VERSION = "2.15"
"""Lustre version: the one that FSx recommends for all new file systems, and that a metadata configuration needs."""

THROUGHPUTS_MBPS_PER_TIB = (125, 250, 500, 1000)
"""PerUnitStorageThroughput of PERSISTENT_2 on SSD, which needs one of them."""

DEFAULT_MBPS_PER_TIB = 125

SCRATCH_MBPS_PER_TIB = 200
"""What SCRATCH_2 reads; no parameter (user guide, SSD storage: 200 read, 100 written)."""

SMALLEST_GIB = 1200
STEP_GIB = 2400
"""StorageCapacity of PERSISTENT_2 on SSD and of SCRATCH_2: 1200, or a multiple of 2400 GiB."""

MOST_GIB = 2_147_483_647
"""The largest StorageCapacity that the API takes, whatever the kind (shape StorageCapacity). There is no other fixed
limit for Lustre: what an account may have is a quota that AWS raises (cfn-lint pull request 4708, read 2026-11)."""

QUOTA_GIB = 100_800
"""Storage of all file systems of an account and region before a quota is raised; 25,200 in some regions. FSx for Lustre
user guide, limits, as published in awsdocs/amazon-fsx-lustre-user-guide (2023), read 2026-11. What the quotas of
INTELLIGENT_TIERING are was not found."""

EFA_STEP_GIB = {125: 38400, 250: 19200, 500: 9600, 1000: 4800}
"""StorageCapacity with EFA is a multiple of this, by MB/s per TiB (user guide, increase-storage-capacity)."""

TIERING_SMALL_MBPS = (1000, 2000)
TIERING_STEP_MBPS = 4000
TIERING_MOST_MBPS = 2_000_000
"""ThroughputCapacity of INTELLIGENT_TIERING: 1000, 2000, or a multiple of 4000 up to 2,000,000 MB/s."""

CACHE_GIB_PER_1000_MBPS = (8, 32768)
"""Least and most SSD read cache of INTELLIGENT_TIERING for every 1000 MB/s."""

METADATA_SMALL_IOPS = (1500, 3000, 6000)
METADATA_STEP_IOPS = 12000
METADATA_MOST_IOPS = 192_000
"""Iops of a metadata configuration on SSD; not fewer than its automatic mode provides (API reference,
CreateFileSystemLustreMetadataConfiguration, botocore 1.44.8)."""

AUTOMATIC_METADATA_IOPS = ((48_000, None), (12_000, 12_000), (4800, 6000), (2400, 3000), (0, 1500))
"""What automatic mode provides from so many GiB on SSD; from the largest on, a step for every whole 24,000 GiB.

Source: the table of the user guide, performance, "File system metadata performance", as a public note on FSx for Lustre
retells it; read 2026-12. The page itself could not be read from here.
"""

AUTOMATIC_METADATA_STEP_GIB = 24_000

TIERING_LEAST_METADATA_IOPS = 6000
"""With INTELLIGENT_TIERING. Releases of the API reference differ about less (1.44.8 lists 1500 and 3000, the user guide
does not) and about an automatic mode; 6000, 12000 and multiples of it are in all that list more than two values."""

MAINTENANCE_PATTERN = r"^[1-7]:([01]\d|2[0-3]):([0-5]\d)$"
"""WeeklyMaintenanceStartTime, d:HH:MM in UTC; day 1 is Monday."""

COMPRESSIONS = ("lz4", "none")

MOST_LINKS = 8
"""Data repository associations of a file system. INTELLIGENT_TIERING has none (API reference,
DataRepositoryAssociation)."""

EVENTS = ("new", "changed", "deleted")
"""What an association imports and exports."""

NO_EFA_CLIENTS = ("trn2",)
"""Families that reach no EFA-enabled file system over EFA (user guide, efa-file-systems)."""
