"""Network namespaces of Linux that have no name: whoever holds one keeps it, and nothing has to be removed.

The standard library alone, for a node's init enters one with it. Sources: namespaces(7), network_namespaces(7),
user_namespaces(7). It is a thread that enters a namespace, and a socket stays in the one that it was made in.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from sandbox.guard import LIBC

CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000
CAP_NET_ADMIN = 12
CAP_SYS_ADMIN = 21
OF_THIS_THREAD = "/proc/thread-self/ns/net"

_Result = TypeVar("_Result")


class Namespace:
    """An empty network namespace; it is there until it is closed and no process and no socket is in it.

    Raises:
        OSError: If this process may not make one.
    """

    def __init__(self) -> None:
        self._handle = _in_a_thread(_new_network)

    @property
    def path(self) -> Path:
        """Where other processes find it while this one holds it."""
        return Path(f"/proc/{os.getpid()}/fd/{self._handle}")

    def run(self, work: Callable[[], _Result]) -> _Result:
        """What a function returns that runs inside, as the commands do that it starts; others stay where they are."""
        return inside(self.path, work)

    def close(self) -> None:
        """Hold it no longer."""
        os.close(self._handle)


def inside(path: Path, work: Callable[[], _Result]) -> _Result:
    """What a function returns that runs in the network namespace at a path, in a thread of its own.

    Raises:
        OSError: If it may not be entered; and whatever the function raises.
    """

    def entered() -> _Result:
        enter(path)
        return work()

    return _in_a_thread(entered)


def enter(path: Path) -> None:
    """Take this thread, and what it starts from now on, into the network namespace at a path.

    Raises:
        OSError: If it may not be entered.
    """
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        _check(LIBC.setns(handle, CLONE_NEWNET))
    finally:
        os.close(handle)


def may_make_them() -> bool:
    """Whether this process has the capabilities to make network namespaces and to set them up."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (effective,) = (int(line.split()[1], 16) for line in lines if line.startswith("CapEff:"))
    return all(effective >> number & 1 for number in (CAP_NET_ADMIN, CAP_SYS_ADMIN))


def become_root() -> None:
    """Make this process root of a user namespace of its own, who may make network namespaces; before any thread.

    Raises:
        OSError: If this system does not let its users do so.
    """
    user, group = os.getuid(), os.getgid()
    _check(LIBC.unshare(CLONE_NEWUSER))
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
        Path("/proc/self", name).write_text(text)


def _new_network() -> int:
    _check(LIBC.unshare(CLONE_NEWNET))
    return os.open(OF_THIS_THREAD, os.O_RDONLY | os.O_CLOEXEC)


def _in_a_thread(work: Callable[[], _Result]) -> _Result:
    results: list[_Result] = []
    errors: list[BaseException] = []

    def attempt() -> None:
        try:
            results.append(work())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=attempt)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


def _check(status: int) -> None:
    if status != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
