from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from sandbox.metadata import InstanceMetadata


@pytest.fixture
def metadata() -> Iterator[InstanceMetadata]:
    values = {"instance-id": "i-1", "tags/instance/trainfabric:role": "worker", "placement/region": "us-east-1"}
    with InstanceMetadata("127.77.0.2", values, "#cloud-config\n") as served:
        yield served


def request(metadata: InstanceMetadata, path: str, method: str = "GET", **headers: str) -> tuple[int, str]:
    dashed = {name.replace("_", "-"): value for name, value in headers.items()}
    asked = urllib.request.Request(metadata.endpoint + path, method=method, headers=dashed)
    try:
        with urllib.request.urlopen(asked, timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, ""


def token(metadata: InstanceMetadata, ttl: str = "60") -> tuple[int, str]:
    return request(metadata, "/latest/api/token", "PUT", X_aws_ec2_metadata_token_ttl_seconds=ttl)


def get(metadata: InstanceMetadata, path: str) -> tuple[int, str]:
    return request(metadata, f"/latest/meta-data/{path}", X_aws_ec2_metadata_token=token(metadata)[1])


def test_a_node_reads_who_it_is(metadata: InstanceMetadata) -> None:
    assert get(metadata, "instance-id") == (200, "i-1")
    assert get(metadata, "local-ipv4") == (200, "127.77.0.2")
    assert get(metadata, "tags/instance") == (200, "trainfabric:role")
    assert get(metadata, "") == (200, "instance-id\nlocal-ipv4\nplacement/\ntags/")


def test_without_a_good_token_nothing_is_told(metadata: InstanceMetadata) -> None:
    assert request(metadata, "/latest/meta-data/instance-id")[0] == 401
    assert request(metadata, "/latest/meta-data/instance-id", X_aws_ec2_metadata_token="guessed")[0] == 401
    assert [token(metadata, ttl)[0] for ttl in ("0", "21601", "soon", "21600")] == [400, 400, 400, 200]


def test_a_token_ends_with_its_time_to_live(metadata: InstanceMetadata, monkeypatch: pytest.MonkeyPatch) -> None:
    given = token(metadata, "60")[1]
    assert metadata.accepts(given)
    monkeypatch.setattr("sandbox.metadata.time.monotonic", lambda: float("inf"))
    assert not metadata.accepts(given)


def test_the_interruption_notice_is_not_there_until_it_is_given(metadata: InstanceMetadata) -> None:
    assert get(metadata, "spot/instance-action") == (404, "")
    metadata.interrupt("2030-01-01T00:02:00Z")
    code, text = get(metadata, "spot/instance-action")
    assert (code, json.loads(text)) == (200, {"action": "terminate", "time": "2030-01-01T00:02:00Z"})


def test_a_rebalance_recommendation_is_not_there_until_it_is_given(metadata: InstanceMetadata) -> None:
    assert get(metadata, "events/recommendations/rebalance") == (404, "")
    metadata.recommend_rebalance("2030-01-01T00:00:00Z")
    code, text = get(metadata, "events/recommendations/rebalance")
    assert (code, json.loads(text)) == (200, {"noticeTime": "2030-01-01T00:00:00Z"})


def test_a_node_reads_its_user_data(metadata: InstanceMetadata) -> None:
    assert request(metadata, "/latest/user-data")[0] == 401
    given = token(metadata)[1]
    assert request(metadata, "/latest/user-data", X_aws_ec2_metadata_token=given) == (200, "#cloud-config\n")
    with InstanceMetadata("127.77.0.3", {}) as without:
        given = token(without)[1]
        assert request(without, "/latest/user-data", X_aws_ec2_metadata_token=given) == (404, "")
