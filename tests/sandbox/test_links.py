"""Nodes in network namespaces: what they reach, what a link that is taken away does, and what is left in the end."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from sandbox import bridge
from sandbox.bridge import BRIDGE_ADDRESS, Bridge, be_allowed
from sandbox.fleet import Fleet
from sandbox.namespaces import Namespace, inside
from sandbox.network import Connection, Loopback
from sandbox.node.local_node import LocalNode
from sandbox.nodes import NodeRunner
from sandbox.processes import ENDPOINT_VARIABLE, Children, node_environment, wait_until
from sandbox.services import aws_variables
from tests.sandbox.conftest import Aws
from tests.sandbox.fleets import SmallFleet
from tests.sandbox.machines import alive
from trainfabric_plan.errors import NotFound, Refused, Unreachable

ENDS_S = 30.0
UNPRIVILEGED = ["setpriv", "--inh-caps=-all", "--bounding-set=-all,+setfcap"]
"""Begins a command that may do no more than a user; Linux asks uid 0 for setfcap before it maps itself, others not."""
USER_DATA = """\
#cloud-config
write_files:
- path: /etc/systemd/system/own.service
  content: |
    [Service]
    Type=exec
    Environment=SAID=ROLE
    ExecStart=/opt/own
- path: /opt/own
  permissions: '0755'
  content: |
    #!/usr/bin/bash
    sleep 600 &
    env >part
    echo "CHILD=$!" >>part
    echo "OWN=$$" >>part
    mv part given
    wait
runcmd:
- systemctl daemon-reload
- systemctl start own.service
"""


@pytest.fixture
def service() -> Iterator[socket.socket]:
    """A service of this machine that says back what it hears."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_echo, args=(listener,), daemon=True).start()
        yield listener
        listener.shutdown(socket.SHUT_RDWR)


def _echo(listener: socket.socket) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=_say_back, args=(connection,), daemon=True).start()


def _say_back(connection: socket.socket) -> None:
    with connection:
        while data := connection.recv(4096):
            connection.sendall(data)


@pytest.fixture
def network(service: socket.socket, tmp_path: Path) -> Iterator[Bridge]:
    with Children() as children:
        made = Bridge(children, {ENDPOINT_VARIABLE: url_of(service)}, tmp_path / "relay.log")
        yield made
        made.close()


@pytest.fixture
def nodes(network: Bridge) -> Iterator[list[Connection]]:
    made = [network.connect(), network.connect()]
    yield made
    for connection in made:
        connection.close()


def url_of(service: socket.socket) -> str:
    return f"http://localhost:{service.getsockname()[1]}"


def connected(node: Connection, address: str, port: int) -> socket.socket:
    """A connection of a node, which stays in the node's network."""
    assert node.namespace is not None
    return node.namespace.run(lambda: socket.create_connection((address, port), timeout=10))


def echoed(connection: socket.socket, text: bytes) -> bytes:
    connection.sendall(text)
    return connection.recv(4096)


def test_a_node_reaches_the_services_of_this_machine_at_the_bridge(
    network: Bridge, nodes: list[Connection], service: socket.socket
) -> None:
    port = service.getsockname()[1]
    given = {ENDPOINT_VARIABLE: url_of(service), "AWS_REGION": "us-east-1"}

    assert network.variables(given) == {
        ENDPOINT_VARIABLE: f"http://{BRIDGE_ADDRESS}:{port}",
        "AWS_REGION": "us-east-1",
        "GLOO_SOCKET_IFNAME": "eth0",
    }
    with connected(nodes[0], BRIDGE_ADDRESS, port) as connection:
        assert echoed(connection, b"heard") == b"heard"
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(1) == b""
    with pytest.raises(ConnectionRefusedError):
        connected(nodes[0], "127.0.0.1", port)


def test_nodes_reach_each_other_and_nobody_else_is_on_their_network(nodes: list[Connection]) -> None:
    first, second = nodes
    assert second.namespace is not None
    listener = second.namespace.run(lambda: socket.create_server((second.address, 0)))
    with closing(listener), connected(first, *listener.getsockname()) as connection:
        assert connection.getpeername()[0] == second.address
    with pytest.raises(OSError, match="unreachable"):
        connected(first, "192.0.2.1", 80)
    names = {name for _, name in socket.if_nameindex()}
    assert not names & {"bridge", first.port, second.port}


def test_a_connection_over_a_link_that_is_down_is_silent_and_goes_on_when_the_link_is_up(
    network: Bridge, nodes: list[Connection], service: socket.socket
) -> None:
    with connected(nodes[0], BRIDGE_ADDRESS, service.getsockname()[1]) as connection:
        assert echoed(connection, b"before") == b"before"

        network.set_link(nodes[0], up=False)
        connection.settimeout(0.5)
        with pytest.raises(TimeoutError):
            echoed(connection, b"meanwhile")
        with connected(nodes[1], BRIDGE_ADDRESS, service.getsockname()[1]) as other:
            assert echoed(other, b"another") == b"another"

        network.set_link(nodes[0], up=True)
        connection.settimeout(10)
        assert connection.recv(4096) == b"meanwhile"


def test_the_program_ip_must_be_there(monkeypatch: pytest.MonkeyPatch, children: Children, tmp_path: Path) -> None:
    monkeypatch.setattr("sandbox.bridge.shutil.which", lambda *_, **__: None)
    with pytest.raises(NotFound) as failure:
        Bridge(children, {}, tmp_path / "log")
    assert str(failure.value) == (
        "sandbox: the program ip must be there for network namespaces; install the package iproute2"
    )


def test_what_ip_refuses_is_told(network: Bridge) -> None:
    namespace = Namespace()
    with closing(namespace), pytest.raises(Unreachable) as failure:
        network._run(namespace, "link set nothing up")
    assert str(failure.value) == (
        'sandbox: ip must set up the nodes\' network, got Cannot find device "nothing" Command failed -:1; '
        "does the kernel have veth?"
    )


def test_who_may_not_make_namespaces_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden() -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(bridge, "may_make_them", lambda: False)
    monkeypatch.setattr(bridge, "become_root", forbidden)
    with pytest.raises(Refused) as failure:
        be_allowed()
    assert str(failure.value) == (
        "sandbox: network namespaces must be allowed, got Operation not permitted; "
        "be root, or allow user namespaces (sysctl user.max_user_namespaces)"
    )


def test_a_user_makes_them_in_a_user_namespace_in_which_he_is_root(sandbox_root: Path) -> None:
    program = """
import os, socket
from sandbox.bridge import be_allowed
from sandbox.guard import LIBC
from sandbox.namespaces import Namespace
os.setgroups([])
os.setresgid(65534, 65534, 65534)
os.setresuid(65534, 65534, 65534)
LIBC.prctl(4, 1)  # PR_SET_DUMPABLE, lost with the change of the user: who comes as a user has it
be_allowed()
print(os.getuid(), Namespace().run(socket.if_nameindex))
"""
    ran = subprocess.run([sys.executable, "-c", program], cwd=sandbox_root, capture_output=True, text=True, check=False)

    assert (ran.stdout, ran.stderr) == ("0 [(1, 'lo')]\n", "")


def test_a_link_on_loopback_cannot_be_taken() -> None:
    network = Loopback()
    connection = network.connect()
    with closing(network), closing(connection), pytest.raises(Refused) as failure:
        network.set_link(connection, up=False)
    assert str(failure.value) == (
        "sandbox: a node must have a network namespace for its link to be changed, got loopback; "
        "start python -m sandbox nodes --network namespaces"
    )


@pytest.fixture
def fleet(aws: Aws, new_name: Callable[[str], str]) -> SmallFleet:
    made = SmallFleet(aws, new_name("environment"))
    made.deploy(USER_DATA)
    made.describe()
    return made


@pytest.fixture
def runner(aws: Aws, fleet: SmallFleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[NodeRunner]:
    for name, value in aws_variables(aws.endpoint).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sandbox.nodes.ASK_S", 0)
    monkeypatch.setattr("sandbox.node.local_node.GRACE_S", 2.0)
    with Children() as children:
        network = Bridge(children, node_environment(), tmp_path / "relay.log")
        made = NodeRunner(Fleet(fleet.name), tmp_path / "nodes", children, network)
        yield made
        made.stop()


def given_to(root: Path) -> dict[str, str]:
    """The variables of a node's service, once it runs."""
    wait_until((root / "given").exists, timeout_s=ENDS_S, what=f"the service of {root}")
    lines = (root / "given").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)


def worker(fleet: SmallFleet, runner: NodeRunner) -> tuple[LocalNode, Path]:
    """A node that has come up, and its network."""
    fleet.scale(worker=1)
    runner.tick()
    (node,) = runner.nodes.values()
    return node, Path(f"/proc/{given_to(node.root)['OWN']}/ns/net")


def token(network: Path) -> int:
    """HTTP status of the metadata service as seen from a node's network."""
    asked = urllib.request.Request(
        "http://169.254.169.254/latest/api/token",
        method="PUT",
        headers={"X-aws-ec2-metadata-token-ttl-seconds": "60"},
    )

    def ask() -> int:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(asked, timeout=5) as answer:
            return int(answer.status)

    return inside(network, ask)


def test_a_node_without_a_link_lives_on_and_still_has_its_metadata(
    aws: Aws, fleet: SmallFleet, runner: NodeRunner
) -> None:
    # given
    node, network = worker(fleet, runner)
    port = int(aws.endpoint.rpartition(":")[2])

    def reaches_aws() -> bool:
        with socket.socket() as trying:
            trying.settimeout(1)
            return trying.connect_ex((BRIDGE_ADDRESS, port)) == 0

    assert inside(network, reaches_aws)
    # when
    (node.directory / "link-down").touch()
    runner.tick()
    # then
    assert not inside(network, reaches_aws)
    assert token(network) == 200
    assert node.systemctl("is-active", "own.service") == (0, "active")
    # when
    (node.directory / "link-up").touch()
    runner.tick()
    # then: as soon as the node has found the bridge's address again
    wait_until(lambda: inside(network, reaches_aws), timeout_s=20, what="the link")


def test_all_of_a_node_is_in_its_network_at_its_address(fleet: SmallFleet, runner: NodeRunner) -> None:
    node, network = worker(fleet, runner)
    own = inode("self")

    assert {inode(pid) for pid in node.child.below()} == {network.stat().st_ino}
    assert network.stat().st_ino != own
    assert node.metadata.value("local-ipv4") == node.connection.address == "10.77.0.2"
    assert node.metadata.endpoint == "http://169.254.169.254:80"


def test_a_link_that_cannot_be_taken_is_told_and_nothing_happens(
    aws: Aws, fleet: SmallFleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in aws_variables(aws.endpoint).items():
        monkeypatch.setenv(name, value)
    with Children() as children:
        on_loopback = NodeRunner(Fleet(fleet.name), tmp_path / "nodes", children)
        node, _ = worker(fleet, on_loopback)
        (node.directory / "link-down").touch()
        on_loopback.tick()
        assert node.is_on
        on_loopback.stop()
    assert "a node must have a network namespace for its link to be changed, got loopback" in capsys.readouterr().out


@pytest.mark.parametrize("as_user", [[], UNPRIVILEGED], ids=["as root", "in a user namespace"])
def test_nothing_is_left_of_nodes_and_network_when_their_runner_is_killed(
    aws: Aws, fleet: SmallFleet, sandbox_root: Path, tmp_path: Path, as_user: list[str]
) -> None:
    # given
    fleet.scale(worker=2)
    command = [sys.executable, "-m", "sandbox", "nodes", "--environment", fleet.name, "--state", str(tmp_path)]
    runner = subprocess.Popen(
        [*as_user, *command, "--network", "namespaces"],
        env={**aws_variables(aws.endpoint), "PATH": os.environ["PATH"]},
        cwd=sandbox_root,
    )
    given = [given_to(tmp_path / name / "root") for name in fleet.members()]
    pids = [int(one[name]) for one in given for name in ("OWN", "CHILD")]
    relays = [pid for pid in processes_saying("sandbox.relay") if str(runner.pid) in pid[1]]
    networks = {inode(pid) for pid in pids}
    assert len(networks) == 2
    assert relays
    # when
    runner.kill()
    runner.wait()
    # then
    pids += [pid for pid, _ in relays]
    wait_until(lambda: not any(map(alive, pids)), timeout_s=ENDS_S, what="the end of everything")
    wait_until(lambda: not networks & known_networks(), timeout_s=ENDS_S, what="the end of the networks")


def inode(pid: int | str) -> int:
    """Names the network namespace of a process."""
    return Path(f"/proc/{pid}/ns/net").stat().st_ino


def processes_saying(text: str) -> list[tuple[int, str]]:
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
            found.append((int(folder.name), line))
    return [pair for pair in found if text in pair[1]]


def known_networks() -> set[int]:
    """Network namespaces that somebody holds, as lsns finds them."""
    ran = subprocess.run(["lsns", "--type", "net", "--json", "--output", "NS"], capture_output=True, check=True)
    return {int(entry["ns"]) for entry in json.loads(ran.stdout)["namespaces"]}
