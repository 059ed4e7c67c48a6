from __future__ import annotations

import json
from pathlib import Path

import pytest

from trainfabric_node.launch import Request, line_of
from trainfabric_node.launch import read_request as read
from trainfabric_plan.errors import InvalidInput
from trainfabric_training.launch.wire import Start

START = {
    "epoch": 7,
    "directory": "/var/lib/trainfabric/runs/a/0001/epochs/00000007",
    "environment": {"AWS_DEFAULT_REGION": "us-east-1"},
    "nodes": 2,
    "node_rank": 1,
    "ranks_per_node": 8,
    "run_id": "a.0123456789ab",
    "rendezvous": "10.0.0.1:29400",
    "address": "10.0.0.2",
    "arguments": ["--recipe", "tiny_cpu"],
}


def read_request(line: bytes) -> Request[Start]:
    return read(line, Request[Start])


def line(request: object) -> bytes:
    return json.dumps(request).encode()


def test_a_start_says_where_its_files_lie() -> None:
    start = read_request(line({"start": START})).start

    assert start is not None
    assert (start.epoch, start.arguments) == (7, ("--recipe", "tiny_cpu"))
    assert start.ranks == range(8, 16)
    assert start.log == Path(f"{START['directory']}/trainer.log")
    assert start.rank_files == Path(f"{START['directory']}/ranks")


def test_a_request_is_a_start_a_kill_or_a_question() -> None:
    assert read_request(b'{"kill": 7}') == Request[Start](kill=7)
    assert read_request(b'{"status": true}') == Request[Start](status=True)
    with pytest.raises(InvalidInput) as caught:
        read_request(b"{}")
    assert str(caught.value) == "launcher: request must be start, kill or status, got none"
    with pytest.raises(InvalidInput) as caught:
        read_request(b'{"kill": 7, "status": true}')
    assert str(caught.value) == "launcher: request must be start, kill or status, got kill and status"


def test_every_mistake_of_a_start_is_named() -> None:
    with pytest.raises(InvalidInput) as caught:
        read_request(line({"start": {**START, "nodes": 0, "epoch": "first"}}))

    assert str(caught.value).splitlines() == [
        "launcher: start.epoch must be valid, got Input should be a valid integer",
        "launcher: start.nodes must be valid, got Input should be greater than or equal to 1",
    ]


def test_what_is_no_json_is_refused() -> None:
    with pytest.raises(InvalidInput) as caught:
        read_request(b"start")

    assert str(caught.value).startswith("launcher: request must be valid, got Invalid JSON")


def test_an_answer_is_one_line() -> None:
    assert line_of(ended=7, status=-9) == b'{"ended": 7, "status": -9}\n'
