"""Where a file system may be mounted on a node.

The directories are those that ParallelCluster 3.16.1 refuses (`SharedStorageMountDirValidator` in its
`cluster_validators.py`, 23 of them), the home directories, and where EFA's libraries and trainfabric lie.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from trainfabric_plan.contract import Paths

MOUNT_POINT_PATTERN = r"^(/[A-Za-z0-9_][A-Za-z0-9_-]*)+$"
"""An absolute path of plain names, without a double slash or one at the end."""

OF_THE_SYSTEM = (
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/lib",
    "/lib64",
    "/opt/parallelcluster",
    "/opt/parallelcluster/shared",
    "/opt/parallelcluster/shared_login_nodes",
    "/opt/slurm",
    "/opt/intel",
    "/proc",
    "/root",
    "/run",
    "/sbin",
    "/sys",
    "/tmp",
    "/usr",
    "/var",
    "/opt/amazon",
    Paths.INSTALL,
)
"""Neither these nor what lies below them can be mounted over."""

PARENTS = ("/home", "/media", "/mnt", "/opt", "/srv")
"""These cannot be mounted over; a directory below them can."""

_OURS = ("/home", "/opt/amazon", Paths.INSTALL)
OF_PARALLELCLUSTER = frozenset((*OF_THE_SYSTEM, *PARENTS)).difference(_OURS)
"""Those that ParallelCluster itself refuses."""


@dataclass(frozen=True, kw_only=True)
class MountPointProblem:
    """The rule that a mount point breaks, and what to do about it."""

    rule: str
    remedy: str


def mount_point_problem(path: str) -> MountPointProblem | None:
    """Why nothing can be mounted at this path, or `None` if a file system can."""
    if not re.fullmatch(MOUNT_POINT_PATTERN, path):
        rule = "an absolute path of names of letters, digits, _ and -, without a slash at the end"
        return MountPointProblem(rule=rule, remedy=f"use {Paths.LUSTRE}")
    if path in PARENTS or any(path == used or path.startswith(f"{used}/") for used in OF_THE_SYSTEM):
        rule = "a directory that nothing else uses: mounting there hides files of the system"
        return MountPointProblem(rule=rule, remedy=f"use {Paths.LUSTRE}, or a directory below /mnt")
    return None


def beside_home_problem(path: str) -> MountPointProblem | None:
    """Why a file system mounted here is in the way of the shared home; `None` if both can be there.

    Nodes mount the home second: on one directory it takes the other's systemd unit, which bears the name of the mount
    point (systemd.mount(5)), and what is mounted below the home before it is hidden by it. Nothing lies around it but
    `/`, which is no mount point.
    """
    if path == Paths.SHARED_HOME or path.startswith(f"{Paths.SHARED_HOME}/"):
        rule = f"outside of {Paths.SHARED_HOME}, where the nodes mount the shared home"
        return MountPointProblem(rule=rule, remedy=f"use {Paths.LUSTRE}, or have no shared home")
    return None
