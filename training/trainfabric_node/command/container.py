"""A command in a container: the command lines of docker, worked out and run by nobody here.

A container sees what a command on the node itself sees: network, shared memory, accelerators, EFA devices, Lustre and
its code. The limits are those that NVIDIA's containers ask for when they start; EFA registers memory, which is what
memlock bounds. Neuron devices are given one by one (Neuron documentation, "How to build and run a Neuron container",
read 2026-11). Docker and NVIDIA's toolkit for it are part of the Deep Learning base images (DLAMI release notes,
nvidia_container_toolkit_version, 2026-10).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

LABEL = "trainfabric"
"""Of all containers of ours, so that those that a lost launcher has left are found."""

_DEVICES = ("dev/infiniband/*", "dev/neuron*")
_NVIDIA = "dev/nvidiactl"


@dataclass(frozen=True, kw_only=True)
class Devices:
    """What of a node a container is given.

    Attributes:
        paths: Device files of EFA and Neuron.
        nvidia: Whether there are NVIDIA accelerators.
    """

    paths: tuple[str, ...] = ()
    nvidia: bool = False


def devices_of(root: Path = Path("/")) -> Devices:
    """The devices of this node that a container needs."""
    paths = sorted(str(path) for pattern in _DEVICES for path in root.glob(pattern) if not path.is_dir())
    return Devices(paths=tuple(paths), nvidia=(root / _NVIDIA).exists())


def docker_run(
    *,
    name: str,
    image: str,
    command: str,
    variables: Sequence[str],
    devices: Devices,
    mounts: Sequence[Path],
    directory: Path | None,
) -> list[str]:
    """The command line that runs a command in a container until it ends.

    Args:
        name: Of the container.
        image: Its image.
        command: For a shell in it; `--init` and the variable let SIGTERM reach all of its processes.
        variables: Names of variables; their values are those of docker's own environment.
        devices: What of the node it is given.
        mounts: Folders that lie in the container where they lie on the node.
        directory: Where the command starts; the image's own if `None`.
    """
    return [
        *("docker", "run", "--rm", "--init", "--name", name, "--label", LABEL),
        *("--network", "host", "--ipc", "host"),
        *("--ulimit", "memlock=-1:-1", "--ulimit", "stack=67108864", "--cap-add", "IPC_LOCK"),
        *(word for path in devices.paths for word in ("--device", path)),
        *(("--gpus", "all") if devices.nvidia else ()),
        *(word for path in mounts for word in ("--volume", f"{path}:{path}")),
        *(word for variable in variables for word in ("--env", variable)),
        *("--env", "TINI_KILL_PROCESS_GROUP=1"),
        *(("--workdir", str(directory)) if directory else ()),
        *("--entrypoint", "/bin/sh", image, "-c", command),
    ]


def container_name(job: str, epoch: int) -> str:
    """Name of the container of an epoch."""
    return f"trainfabric-{job}-{epoch}"


def docker_list() -> list[str]:
    """The command line that lists the ids of all containers of ours."""
    return ["docker", "ps", "--all", "--quiet", "--filter", f"label={LABEL}"]


def docker_remove(ids: Sequence[str]) -> list[str]:
    """The command line that kills and removes containers."""
    return ["docker", "rm", "--force", *ids]


def ecr_password(region: str) -> list[str]:
    """The command line that prints a password for the registries of ECR in a region, good for twelve hours."""
    return ["aws", "ecr", "get-login-password", "--region", region]


def docker_login(registry: str) -> list[str]:
    """The command line that takes that password on its standard input."""
    return ["docker", "login", "--username", "AWS", "--password-stdin", registry]


def docker_pull(image: str) -> list[str]:
    """The command line that fetches an image."""
    return ["docker", "pull", "--quiet", image]
