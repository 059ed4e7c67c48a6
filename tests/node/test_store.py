from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.node.seaweed import Seaweed, free_ports
from trainfabric_node.store import ObjectMissing, Store, open_store
from trainfabric_plan.errors import InvalidInput, NotFound, Unreachable


def test_what_was_put_is_what_is_read(store: Store) -> None:
    store.put("a/b", b"0123456789")

    assert store.get("a/b") == b"0123456789"
    assert store.get_range("a/b", 2, 3) == b"234"
    assert store.size("a/b") == 10


def test_a_second_put_replaces_the_first(store: Store) -> None:
    store.put("key", b"first and longer")

    store.put("key", b"second")

    assert store.get("key") == b"second"


def test_an_empty_object_is_an_object(store: Store) -> None:
    store.put("empty", b"")

    assert store.get("empty") == b""
    assert store.list("") == ["empty"]


def test_a_range_ends_where_the_object_ends(store: Store) -> None:
    store.put("key", b"0123456789")

    assert store.get_range("key", 8, 5) == b"89"
    assert store.get_range("key", 10, 5) == b""
    assert store.get_range("key", 3, 0) == b""


def test_put_if_absent_refuses_a_taken_key_and_keeps_what_is_there(store: Store) -> None:
    assert store.put_if_absent("log/1", b"mine")

    assert not store.put_if_absent("log/1", b"yours")
    assert store.get("log/1") == b"mine"


def test_put_if_absent_counts_the_same_data_as_its_own_retry(store: Store) -> None:
    assert store.put_if_absent("log/1", b"mine, with a nonce")

    assert store.put_if_absent("log/1", b"mine, with a nonce")


def test_of_racing_writers_exactly_one_gets_each_key(store: Store) -> None:
    writers, keys = 16, 2
    barrier = threading.Barrier(writers)

    def race(writer: int, key: int) -> bool:
        barrier.wait()
        return store.put_if_absent(f"log/{key}", f"writer {writer}".encode())

    with ThreadPoolExecutor(writers) as pool:
        for key in range(keys):
            won = list(pool.map(race, range(writers), [key] * writers))
            assert won.count(True) == 1
            assert store.get(f"log/{key}") == f"writer {won.index(True)}".encode()


def test_list_gives_sorted_keys_below_a_prefix(store: Store) -> None:
    for key in ("log/2", "log/10", "logs", "other/1", "log/1/deep"):
        store.put(key, b"x")

    assert store.list("log/") == ["log/1/deep", "log/10", "log/2"]
    assert store.list("lo") == ["log/1/deep", "log/10", "log/2", "logs"]
    assert store.list("log/1") == ["log/1/deep", "log/10"]
    assert store.list("none/") == []
    assert store.list("") == ["log/1/deep", "log/10", "log/2", "logs", "other/1"]


def test_a_deleted_object_is_gone_and_deleting_it_again_does_nothing(store: Store) -> None:
    store.put("key", b"x")

    store.delete("key")
    store.delete("key")

    assert store.list("") == []


def test_reading_a_missing_object_names_it(store: Store) -> None:
    for read in (store.get, store.size, lambda key: store.get_range(key, 0, 1)):
        with pytest.raises(ObjectMissing) as caught:
            read("steps/1/part")

        assert str(caught.value) == (
            f"{store.uri}: steps/1/part must be an existing object, got none; check the address and what wrote it"
        )


def test_the_address_of_a_store_ends_with_a_slash(tmp_path: Path, s3_uri: str) -> None:
    assert open_store(f"file://{tmp_path}").uri == f"file://{tmp_path}/"
    assert open_store(str(tmp_path)).uri == f"file://{tmp_path}/"
    assert open_store(s3_uri).uri == f"{s3_uri}/"
    assert open_store("s3://bucket").uri == "s3://bucket/"


@pytest.mark.parametrize("uri", ["", "ftp://host/path", "s3://", "file://host/path"])
def test_an_unknown_address_is_refused(uri: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        open_store(uri)

    assert str(caught.value) == (
        f"{uri!r}: store address must be s3://bucket/prefix/, file:///directory or a path, got {uri!r}"
    )


@pytest.mark.parametrize("key", ["", "/etc/passwd", "a/../../b", "a//b", ".hidden", "a/"])
def test_a_key_cannot_leave_the_directory(tmp_path: Path, key: str) -> None:
    with pytest.raises(ValueError, match="not a key of a store"):
        open_store(str(tmp_path)).put(key, b"x")


def test_writes_in_progress_are_no_objects(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    store.put("a/key", b"x")
    (tmp_path / "a" / ".key.half-written").write_bytes(b"ha")

    assert store.list("") == ["a/key"]


def test_a_directory_that_refuses_writes_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    store = open_store(str(tmp_path))

    with pytest.raises(Unreachable) as caught:
        store.put("file/key", b"x")

    assert str(caught.value) == (
        f"file://{tmp_path}/: file/key must be writable, got File exists; check owner, space and mount"
    )


def test_a_missing_bucket_is_named_with_a_remedy(s3_uri: str) -> None:
    store = open_store("s3://no-such-bucket/prefix/")

    for act in (lambda: store.put("key", b"x"), lambda: store.get("key"), lambda: store.list("")):
        with pytest.raises(NotFound) as caught:
            act()
        assert str(caught.value) == (
            "s3://no-such-bucket/prefix/: bucket must be an existing one, got no-such-bucket; "
            "deploy the environment, or correct the name"
        )


def test_no_credentials_is_said_with_a_remedy(
    seaweed: Seaweed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", seaweed.endpoint)

    with pytest.raises(Unreachable) as caught:
        open_store("s3://bucket/prefix/").list("")

    assert str(caught.value) == (
        "s3://bucket/prefix/: AWS credentials must be given, got none; "
        "set AWS_PROFILE or run aws configure; on a node, check its instance profile"
    )


def test_wrong_credentials_are_said_with_a_remedy(s3_uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")

    with pytest.raises(Unreachable) as caught:
        open_store(s3_uri).list("")

    assert str(caught.value).startswith(
        f"{s3_uri}/: S3 must accept the request, got An error occurred (SignatureDoesNotMatch)"
    )
    assert str(caught.value).endswith("; check the credentials and the bucket's policy")


def test_an_endpoint_that_does_not_answer_is_said_with_a_remedy(
    seaweed: Seaweed, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in seaweed.environment.items():
        monkeypatch.setenv(name, value)
    endpoint = f"http://127.0.0.1:{free_ports(1)[0]}"
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", endpoint)
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")

    with pytest.raises(Unreachable) as caught:
        open_store("s3://bucket/prefix/").get("key")

    assert str(caught.value) == (
        "s3://bucket/prefix/: S3 must answer, got Could not connect to the endpoint URL: "
        f'"{endpoint}/bucket/prefix/key"; check the network and AWS_ENDPOINT_URL_S3'
    )
