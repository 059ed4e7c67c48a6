from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from tests.node.membership.said import TOKEN, beat
from trainfabric_node.membership.client import Channel
from trainfabric_node.membership.protocol import LONGEST_LINE, Answer, Beat
from trainfabric_node.membership.server import ControlServer
from trainfabric_plan.errors import InvalidInput, Refused, Unreachable


def respond(said: Beat) -> Answer:
    if said.token != TOKEN:
        raise Refused("token must be the run's, got another")
    if said.instance_id == "i-9":
        raise ZeroDivisionError
    return Answer(sequence=said.sequence, controller="c-1", epoch=said.sequence)


@pytest.fixture
def server() -> Iterator[ControlServer]:
    with ControlServer("127.0.0.1", 0, respond) as running:
        yield running


@pytest.fixture
def channel(server: ControlServer) -> Iterator[Channel]:
    with Channel("127.0.0.1", server.port) as made:
        yield made


@pytest.fixture
def stranger(server: ControlServer) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.settimeout(5)
        yield connection


def everything(connection: socket.socket) -> bytes:
    """Until the other side has ended the connection."""
    found = b""
    try:
        while data := connection.recv(65536):
            found += data
    except ConnectionResetError:
        pass
    return found


def test_each_beat_is_answered_on_one_connection(channel: Channel) -> None:
    answers = [channel.exchange(beat(sequence=number), 5) for number in (1, 2, 3)]

    assert [answer.sequence for answer in answers] == [1, 2, 3]


def test_a_beat_with_a_long_stack_is_answered(channel: Channel) -> None:
    assert channel.exchange(beat(address="x" * 1_000_000, sequence=7), 5).sequence == 7


def test_a_supervisor_is_told_why_its_beat_is_refused(server: ControlServer, channel: Channel) -> None:
    with pytest.raises(Unreachable) as refused:
        channel.exchange(beat(token="another"), 5)

    assert str(refused.value) == (
        f"127.0.0.1:{server.port}: the controller must answer, got a refusal: token must be the run's, got another; "
        "systemd starts a controller that has ended anew; is its node up, and its port open in the group?"
    )


def test_after_a_refusal_the_next_exchange_connects_anew(channel: Channel) -> None:
    with pytest.raises(Unreachable):
        channel.exchange(beat(token="another"), 5)

    assert channel.exchange(beat(sequence=2), 5).sequence == 2


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"GET / HTTP/1.1\r\n", "line: invalid json: expected value at line 1 column 1"),
        (b"{}\n", "token: field required"),
        (b"\xff\xfe\n", "line: invalid json: expected value at line 1 column 1"),
    ],
)
def test_garbage_is_refused_and_cut_off(stranger: socket.socket, line: bytes, reason: str) -> None:
    stranger.sendall(line)

    assert everything(stranger) == b'{"refused":"' + reason.encode() + b'"}\n'


def test_what_never_ends_a_line_is_cut_off(stranger: socket.socket) -> None:
    with pytest.raises(OSError, match=re.compile("reset|pipe")):
        for _ in range(10 * LONGEST_LINE // 65536):
            stranger.sendall(b"x" * 65536)
            time.sleep(0)


def test_a_beat_that_the_controller_stumbles_over_ends_only_its_connection(channel: Channel) -> None:
    with pytest.raises(Unreachable, match="the controller failed to answer; its log says why"):
        channel.exchange(beat(9), 5)

    assert channel.exchange(beat(sequence=2), 5).sequence == 2


def test_supervisors_that_are_slow_or_dead_delay_no_other(server: ControlServer, channel: Channel) -> None:
    silent = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(50)]
    for connection in silent[:25]:
        connection.sendall(b'{"token": "a", "sequ')
    flood = threading.Thread(target=_flood, args=(server.port,), daemon=True)
    flood.start()
    took = []
    for number in range(100):
        begun = time.monotonic()
        channel.exchange(beat(sequence=number), 5)
        took.append(time.monotonic() - begun)
    for connection in silent:
        connection.close()

    assert sorted(took)[90] < 0.2


def _flood(port: int) -> None:
    """Asks on and on, and never reads."""
    line = beat().model_dump_json().encode() + b"\n"
    with socket.create_connection(("127.0.0.1", port)) as connection:
        try:
            while True:
                connection.sendall(line * 100)
        except OSError:
            return


def test_one_that_asks_on_without_reading_is_cut_off() -> None:
    with ControlServer("127.0.0.1", 0, respond, idle_s=0.2) as server:
        flood = threading.Thread(target=_flood, args=(server.port,), daemon=True)
        flood.start()
        flood.join(20)

    assert not flood.is_alive()


def test_a_connection_on_which_nothing_is_said_is_closed() -> None:
    with (
        ControlServer("127.0.0.1", 0, respond, idle_s=0.1) as server,
        socket.create_connection(("127.0.0.1", server.port)) as connection,
    ):
        connection.settimeout(5)
        assert everything(connection) == b""


def test_a_controller_that_is_stopped_is_unreachable_in_time() -> None:
    with socket.socket() as stopped:
        stopped.bind(("127.0.0.1", 0))
        stopped.listen()
        port = stopped.getsockname()[1]
        begun = time.monotonic()
        with Channel("127.0.0.1", port) as channel, pytest.raises(Unreachable) as silent:
            channel.exchange(beat(), 0.2)

    assert 0.2 <= time.monotonic() - begun < 2
    assert str(silent.value) == (
        f"127.0.0.1:{port}: the controller must answer, got no whole answer in time; "
        "systemd starts a controller that has ended anew; is its node up, and its port open in the group?"
    )


def test_a_controller_that_is_gone_is_unreachable_and_one_that_is_back_is_reached(server: ControlServer) -> None:
    with Channel("127.0.0.1", server.port) as channel:
        channel.exchange(beat(), 5)
        server.close()
        with pytest.raises(Unreachable):
            channel.exchange(beat(), 5)
        with pytest.raises(Unreachable, match="Connection refused"):
            channel.exchange(beat(), 5)
        with ControlServer("127.0.0.1", server.port, respond):
            assert channel.exchange(beat(sequence=4), 5).sequence == 4


def test_a_port_that_is_taken_is_said_so(server: ControlServer) -> None:
    with pytest.raises(InvalidInput) as taken:
        ControlServer("127.0.0.1", server.port, respond)

    assert str(taken.value) == (
        f"controller: port must be free, on an address of this node, got 127.0.0.1:{server.port} "
        "(Address already in use); end what else listens there, or give another TRAINFABRIC_CONTROL_PORT"
    )


def test_nobody_is_listened_to_on_another_address(server: ControlServer) -> None:
    with Channel("127.0.0.2", server.port) as channel, pytest.raises(Unreachable, match="Connection refused"):
        channel.exchange(beat(), 5)
