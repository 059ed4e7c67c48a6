"""A network of namespaces: every local node has an interface like a real node's, linked to the others by a bridge.

Nothing of it has a name, or is in this machine's own network: it ends with this process and those of the nodes. With
its link taken away a node reaches nobody but its metadata service, and nobody is told so.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from sandbox.namespaces import Namespace, become_root, may_make_them
from sandbox.network import INTERFACE_VARIABLE, Connection, bound
from sandbox.node.machine import QUICK
from sandbox.processes import ENDPOINT_VARIABLE, Child, Children, wait_until
from trainfabric_plan.errors import NotFound, Refused, Unreachable

INTERFACE = "eth0"
BRIDGE = "bridge"
BRIDGE_ADDRESS = "10.77.0.1"
PREFIX_LENGTH = 16
METADATA_ADDRESS = ("169.254.169.254", 80)
"""As on EC2, where the machine below the node answers it: it needs no link."""
RELAY_TIMEOUT_S = 15.0


class Bridge:
    """Every node has a network namespace of its own, all of them linked by a bridge in another.

    At the bridge's address a relay stands for the services of this machine that the nodes need. Nothing of it has a
    name, or is in this machine's own network: it ends with this process and those of the nodes.

    Args:
        children: Ends the relay.
        given: Variables of this process; the relay stands for what its AWS_ENDPOINT_URL… name.
        log: Of the relay.

    Raises:
        Refused: If this process may not make network namespaces.
        NotFound: If the program ip is missing.
        Unreachable: If the relay does not come up.
    """

    def __init__(self, children: Children, given: Mapping[str, str], log: Path) -> None:
        self._ip = _ip_program()
        self._middle = _new_namespace()
        self._children = children
        self._count = 0
        self._run(self._middle, *_BRIDGE)
        self._relay = self._start_relay(sorted({_service(url) for url in _endpoints(given).values()}), log)

    def variables(self, given: Mapping[str, str]) -> dict[str, str]:
        """See `Network.variables`."""
        moved = {name: f"http://{BRIDGE_ADDRESS}:{_service(url)[1]}" for name, url in _endpoints(given).items()}
        return {**given, **moved, INTERFACE_VARIABLE: INTERFACE}

    def connect(self) -> Connection:
        """See `Network.connect`."""
        self._count += 1
        number = self._count + 1
        address, port = f"10.77.{number // 256}.{number % 256}", f"port{number}"
        namespace = _new_namespace()
        self._run(namespace, *_node(address, port, self._middle.path))
        self._run(self._middle, f"link set {port} master {BRIDGE}", f"link set {port} up")
        listener = namespace.run(lambda: bound(*METADATA_ADDRESS))
        return Connection(address=address, listener=listener, namespace=namespace, port=port)

    def set_link(self, connection: Connection, *, up: bool) -> None:
        """See `Network.set_link`: the bridge's end, as if the cable was pulled; the node keeps its address."""
        self._run(self._middle, f"link set {connection.port} {'up' if up else 'down'}")

    def close(self) -> None:
        """See `Network.close`."""
        self._children.stop(self._relay)
        self._middle.close()

    def _run(self, namespace: Namespace, *commands: str) -> None:
        namespace.run(lambda: self._batch("\n".join(commands)))

    def _batch(self, commands: str) -> None:
        ran = subprocess.run([self._ip, "-batch", "-"], input=commands, capture_output=True, text=True, check=False)
        if ran.returncode:
            got = " ".join(ran.stderr.split())
            raise Unreachable(f"sandbox: ip must set up the nodes' network, got {got}; does the kernel have veth?")

    def _start_relay(self, services: list[tuple[str, int]], log: Path) -> Child:
        words = [f"{host}:{port}" for host, port in services]
        command = [*QUICK, "sandbox.relay", str(self._middle.path), BRIDGE_ADDRESS, *words]
        child = self._children.start("relay", command, log=log, grace_s=0)

        def listens() -> bool:
            return self._middle.run(lambda: all(_listens(BRIDGE_ADDRESS, port) for _, port in services))

        wait_until(listens, timeout_s=RELAY_TIMEOUT_S, what="the relay of the nodes' network", child=child)
        return child


_BRIDGE = (
    "link set lo up",
    f"link add {BRIDGE} type bridge",
    f"address add {BRIDGE_ADDRESS}/{PREFIX_LENGTH} dev {BRIDGE}",
    f"link set {BRIDGE} up",
)


def _node(address: str, port: str, middle: Path) -> tuple[str, ...]:
    return (
        "link set lo up",
        f"address add {METADATA_ADDRESS[0]}/32 dev lo",
        f"link add {INTERFACE} type veth peer name {port} netns {middle}",
        f"address add {address}/{PREFIX_LENGTH} dev {INTERFACE}",
        f"link set {INTERFACE} up",
    )


def be_allowed() -> None:
    """See to it that this process may make network namespaces; call it before there are threads and children.

    Who may not becomes root of a user namespace, as `unshare --map-root-user` does.

    Raises:
        Refused: If this system does not let its users do so.
    """
    if not may_make_them():
        try:
            become_root()
        except OSError as error:
            raise _not_allowed(error) from error


def _new_namespace() -> Namespace:
    try:
        return Namespace()
    except OSError as error:
        raise _not_allowed(error) from error


def _not_allowed(error: OSError) -> Refused:
    return Refused(
        f"sandbox: network namespaces must be allowed, got {error.strerror}; "
        "be root, or allow user namespaces (sysctl user.max_user_namespaces)"
    )


def _ip_program() -> str:
    found = shutil.which("ip") or shutil.which("ip", path="/usr/sbin:/sbin")
    if found is None:
        raise NotFound("sandbox: the program ip must be there for network namespaces; install the package iproute2")
    return found


def _endpoints(given: Mapping[str, str]) -> dict[str, str]:
    return {name: url for name, url in given.items() if name.startswith(ENDPOINT_VARIABLE)}


def _service(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    return parts.hostname or "", parts.port or 80


def _listens(address: str, port: int) -> bool:
    with socket.socket() as trying:
        return trying.connect_ex((address, port)) == 0
