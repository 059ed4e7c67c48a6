"""What FSx for Lustre accepts, and the sizes that follow from a wish."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.session import get_session

from trainfabric_plan.errors import InvalidInput
from trainfabric_plan.lustre import LinkWish, LustreWish, link_mistakes, lustre_mistakes, lustre_size
from trainfabric_plan.lustre.facts import EVENTS, MAINTENANCE_PATTERN, MOST_GIB, TIERING_MOST_MBPS

TIERING, SCRATCH = "intelligent_tiering", "scratch_2"


@pytest.mark.parametrize(
    ("wish", "messages"),
    [
        ({"capacity_gib": 1200}, []),
        ({"capacity_gib": 4800, "throughput_mbps_per_tib": 1000}, []),
        ({"capacity_gib": 3600}, ["fs: capacity_gib must be 1200 or a multiple of 2400 GiB, got 3600; use 4800"]),
        ({"capacity_gib": 0}, ["fs: capacity_gib must be 1200 or a multiple of 2400 GiB, got 0; use 1200"]),
        (
            {"throughput_mbps_per_tib": 100},
            ["fs: throughput_mbps_per_tib must be one of 125, 250, 500, 1000 MB/s per TiB, got 100; use 125"],
        ),
        (
            {"throughput_mbps": 4000, "read_cache_gib": 64},
            [
                "fs: throughput_mbps must be left out with persistent_2, which has none, got 4000; "
                "remove throughput_mbps",
                "fs: read_cache_gib must be left out with persistent_2, which has none, got 64; remove read_cache_gib",
            ],
        ),
        (
            {"capacity_gib": 1200, "required_throughput_mbps": 500},
            [
                "fs: required_throughput_mbps must be left out when capacity_gib is given: one follows from the other, "
                "got 500; remove one of them"
            ],
        ),
        (
            {"efa": True, "capacity_gib": 4800, "throughput_mbps_per_tib": 250},
            [
                "fs: capacity_gib must be a multiple of 19200 GiB with efa at 250 MB/s per TiB, got 4800; use 19200",
            ],
        ),
        ({"efa": True, "capacity_gib": 4800, "throughput_mbps_per_tib": 1000}, []),
        ({"efa": True, "capacity_gib": 19200, "throughput_mbps_per_tib": 500}, []),
        (
            {"efa": True, "capacity_gib": 1200},
            ["fs: capacity_gib must be a multiple of 38400 GiB with efa at 125 MB/s per TiB, got 1200; use 38400"],
        ),
        ({"metadata_iops": 3000}, []),
        ({"metadata_iops": 36000}, []),
        ({"capacity_gib": 45600, "metadata_iops": 12000}, []),
        (
            {"capacity_gib": 96000, "metadata_iops": 1500},
            [
                "fs: metadata_iops must be at least 48000 per second with 96000 GiB: FSx takes no fewer than it "
                "provides by itself, got 1500; use 48000, or leave it out"
            ],
        ),
        (
            {"capacity_gib": 4800, "metadata_iops": 3000},
            [
                "fs: metadata_iops must be at least 6000 per second with 4800 GiB: FSx takes no fewer than it "
                "provides by itself, got 3000; use 6000, or leave it out"
            ],
        ),
        (
            {"required_throughput_mbps": 12000, "metadata_iops": 6000},
            [
                "fs: metadata_iops must be at least 12000 per second with 14400 GiB: FSx takes no fewer than it "
                "provides by itself, got 6000; use 12000, or leave it out"
            ],
        ),
        (
            {"metadata_iops": 9000},
            [
                "fs: metadata_iops must be 1500, 3000, 6000, or a multiple of 12000 up to 192000 per second, got 9000; "
                "use 12000"
            ],
        ),
        (
            {"metadata_iops": 204000},
            [
                "fs: metadata_iops must be 1500, 3000, 6000, or a multiple of 12000 up to 192000 per second, "
                "got 204000; use 192000"
            ],
        ),
        ({"deployment": TIERING, "throughput_mbps": 1000}, []),
        ({"deployment": TIERING, "throughput_mbps": 8000, "read_cache_gib": 64, "metadata_iops": 12000}, []),
        (
            {"deployment": TIERING},
            [
                "fs: throughput_mbps must be given with intelligent_tiering, which needs a throughput, got nothing; "
                "add 1000, 2000 or a multiple of 4000 MB/s"
            ],
        ),
        (
            {"deployment": TIERING, "throughput_mbps": 3000},
            ["fs: throughput_mbps must be 1000, 2000 or a multiple of 4000 MB/s, got 3000; use 4000"],
        ),
        (
            {"deployment": TIERING, "throughput_mbps": 2000, "efa": True},
            ["fs: throughput_mbps must be a multiple of 4000 MB/s with efa, got 2000; use 4000"],
        ),
        (
            {"deployment": TIERING, "throughput_mbps": 2_004_000},
            ["fs: throughput_mbps must be at most 2000000 MB/s with intelligent_tiering, got 2004000"],
        ),
        (
            {"deployment": TIERING, "throughput_mbps": 4000, "capacity_gib": 1200, "throughput_mbps_per_tib": 125},
            [
                "fs: capacity_gib must be left out with intelligent_tiering, which grows and shrinks with its files, "
                "got 1200; remove capacity_gib",
                "fs: throughput_mbps_per_tib must be left out with intelligent_tiering, which has a throughput_mbps of "
                "its own, got 125; remove throughput_mbps_per_tib",
            ],
        ),
        (
            {"deployment": TIERING, "throughput_mbps": 4000, "read_cache_gib": 16},
            [
                "fs: read_cache_gib must be from 32 to 131072 GiB at 4000 MB/s, got 16; "
                "leave it out for a cache in proportion to the throughput"
            ],
        ),
        (
            {"deployment": TIERING, "throughput_mbps": 4000, "metadata_iops": 3000},
            [
                "fs: metadata_iops must be 6000, or a multiple of 12000 up to 192000 per second, got 3000; use 6000",
            ],
        ),
        ({"deployment": SCRATCH, "capacity_gib": 2400}, []),
        (
            {"deployment": SCRATCH, "throughput_mbps_per_tib": 125, "metadata_iops": 1500, "efa": True},
            [
                "fs: throughput_mbps_per_tib must be left out with scratch_2, which always reads 200 MB/s per TiB, "
                "got 125; remove throughput_mbps_per_tib",
                "fs: metadata_iops must be left out with scratch_2, which has none, got 1500; remove metadata_iops",
                "fs: efa must be false with scratch_2: FSx offers EFA with PERSISTENT_2 alone, got true",
            ],
        ),
        ({"compression": "zstd"}, ["fs: compression must be lz4 or none, got zstd"]),
        (
            {"maintenance_window": "8:03:00"},
            [
                "fs: maintenance_window must be d:HH:MM in UTC, with day 1 for Monday, got '8:03:00'; "
                "use 7:03:00 for Sunday at three"
            ],
        ),
        (
            {"deployment": "persistent_1"},
            ["fs: deployment must be one of persistent_2, intelligent_tiering, scratch_2, got persistent_1"],
        ),
        ({"required_throughput_mbps": 0}, ["fs: required_throughput_mbps must be at least 1 MB/s, got 0"]),
        ({"capacity_gib": 2_147_481_600}, []),
        (
            {"capacity_gib": 2_147_484_000},
            [
                "fs: capacity_gib must be at most 2147481600 GiB: FSx takes no larger number, got 2147484000; "
                "use 2147481600"
            ],
        ),
        (
            {"capacity_gib": 2_147_520_000, "efa": True, "throughput_mbps_per_tib": 125},
            [
                "fs: capacity_gib must be at most 2147481600 GiB: FSx takes no larger number, got 2147520000; "
                "use 2147481600"
            ],
        ),
        ({"required_throughput_mbps": 2_097_150_000}, []),
        (
            {"required_throughput_mbps": 2_097_150_001},
            [
                "fs: required_throughput_mbps must be at most 2097150000 MB/s, what the largest size, 2147481600 GiB, "
                "reads at 1000 MB/s per TiB, got 2097150001"
            ],
        ),
        (
            {"required_throughput_mbps": 300_000_000, "throughput_mbps_per_tib": 125},
            [
                "fs: required_throughput_mbps must be at most 262143750 MB/s, what the largest size, 2147481600 GiB, "
                "reads at 125 MB/s per TiB, got 300000000"
            ],
        ),
        (
            {"required_throughput_mbps": 300_000_000, "throughput_mbps_per_tib": 100},
            ["fs: throughput_mbps_per_tib must be one of 125, 250, 500, 1000 MB/s per TiB, got 100; use 125"],
        ),
        (
            {"deployment": SCRATCH, "required_throughput_mbps": 10**12},
            [
                "fs: required_throughput_mbps must be at most 419430000 MB/s, what the largest size, 2147481600 GiB, "
                "reads at 200 MB/s per TiB, got 1000000000000"
            ],
        ),
    ],
)
def test_every_rule_of_fsx_is_told_with_what_to_use_instead(wish: dict[str, Any], messages: list[str]) -> None:
    assert [str(found) for found in lustre_mistakes("fs", LustreWish(**wish))] == messages


@pytest.mark.parametrize(
    ("wish", "deployment_type", "storage", "capacity", "per_tib", "throughput"),
    [
        ({}, "PERSISTENT_2", "SSD", 1200, 125, 146),
        ({"efa": True}, "PERSISTENT_2", "SSD", 38400, 125, 4687),
        ({"efa": True, "throughput_mbps_per_tib": 1000}, "PERSISTENT_2", "SSD", 4800, 1000, 4687),
        ({"required_throughput_mbps": 10_000}, "PERSISTENT_2", "SSD", 12000, 1000, 11718),
        ({"required_throughput_mbps": 200}, "PERSISTENT_2", "SSD", 1200, 250, 292),
        (
            {"required_throughput_mbps": 10_000, "throughput_mbps_per_tib": 125},
            "PERSISTENT_2",
            "SSD",
            84000,
            125,
            10253,
        ),
        ({"required_throughput_mbps": 10_000, "efa": True}, "PERSISTENT_2", "SSD", 14400, 1000, 14062),
        ({"deployment": SCRATCH, "required_throughput_mbps": 1000}, "SCRATCH_2", "SSD", 7200, None, 1406),
        (
            {"deployment": TIERING, "required_throughput_mbps": 4001},
            "PERSISTENT_2",
            "INTELLIGENT_TIERING",
            None,
            None,
            8000,
        ),
    ],
)
def test_the_smallest_file_system_that_gives_what_is_asked_is_chosen(
    wish: dict[str, Any], deployment_type: str, storage: str, capacity: int, per_tib: int, throughput: int
) -> None:
    size = lustre_size(LustreWish(**wish))

    assert (size.deployment_type, size.storage_type) == (deployment_type, storage)
    assert (size.capacity_gib, size.throughput_mbps_per_tib, size.throughput_mbps) == (capacity, per_tib, throughput)
    assert size.throughput_mbps >= wish.get("required_throughput_mbps", 0)


def test_a_size_says_why_it_is_so() -> None:
    assert lustre_size(LustreWish(required_throughput_mbps=10_000)).reasons == (
        "12000 GiB at 1000 MB/s per TiB read 11718 MB/s, at least the 10000 required",
        "the next smaller, 9600 GiB, would read 9375 MB/s",
        "1000 MB/s per TiB: the least with which no smaller capacity does",
    )
    assert lustre_size(LustreWish()).reasons == (
        "1200 GiB: the smallest there is, as no size and no throughput was asked for",
    )
    assert lustre_size(LustreWish(deployment=TIERING, required_throughput_mbps=1500)).reasons == (
        "2000 MB/s: the smallest step that reaches the 1500 MB/s required",
    )


@pytest.mark.parametrize("size", [{"capacity_gib": 100_800}, {"deployment": TIERING, "throughput_mbps": 2_000_000}])
def test_what_is_within_the_quota_or_has_none_that_is_known_is_taken_without_a_word(size: dict[str, Any]) -> None:
    assert lustre_size(LustreWish(**size)).beyond_the_quota is None


def test_a_size_beyond_the_usual_quota_is_said_to_need_more() -> None:
    assert lustre_size(LustreWish(required_throughput_mbps=100_000)).beyond_the_quota == (
        "a file system of 103200 GiB is larger than the 100800 GiB that an account has in a region before its quota is "
        "raised, less in some: ask AWS Support for more first, or FSx refuses it"
    )


def test_a_metadata_configuration_is_made_where_it_is_asked_for_or_needed() -> None:
    plain, efa = lustre_size(LustreWish()), lustre_size(LustreWish(efa=True))
    asked = lustre_size(LustreWish(metadata_iops=12000))
    tiering = lustre_size(LustreWish(deployment=TIERING, throughput_mbps=4000))

    assert [(one.metadata_configured, one.metadata_iops) for one in (plain, efa, asked, tiering)] == [
        (False, None),
        (True, None),
        (True, 12000),
        (True, 6000),
    ]


def test_no_size_follows_from_what_fsx_would_refuse() -> None:
    with pytest.raises(InvalidInput) as refused:
        lustre_size(LustreWish(capacity_gib=1300), "fs")

    assert str(refused.value) == "fs: capacity_gib must be 1200 or a multiple of 2400 GiB, got 1300; use 2400"


def _name(index: int, key: str) -> str:
    return f"links.{index}.{key}" if key else "links"


def _link(path: str = "/data", prefix: str = "data/", **given: Any) -> LinkWish:
    return LinkWish(**{"path": path, "bucket": "ours", "prefix": prefix, **given})


@pytest.mark.parametrize(
    ("links", "messages"),
    [
        ([_link(), _link("/models", "models/"), _link("/home", "data/", bucket="other")], []),
        ([_link("/", "")], []),
        (
            [_link(), _link("/data/more", "more/")],
            [
                "f: links.1.path must be outside of the directory of links.0.path (/data), and not around it, "
                "got /data/more"
            ],
        ),
        ([_link(), _link("/data2", "data2/")], []),
        (
            [_link(), _link("/more", "data/more/")],
            [
                "f: links.1.prefix must be outside of links.0.prefix (data/) of the same bucket, and not around it, "
                "got 'data/more/'"
            ],
        ),
        (
            [_link(prefix=""), _link("/more", "more/")],
            [
                "f: links.1.prefix must be outside of links.0.prefix (the whole bucket) of the same bucket, and not "
                "around it, got 'more/'"
            ],
        ),
        (
            [_link("data")],
            [
                "f: links.0.path must be an absolute path of letters, digits, dots, _ and -, without a slash at the "
                "end, got 'data'; use /data"
            ],
        ),
        (
            [_link(prefix="data")],
            [
                "f: links.0.prefix must be a key prefix that ends with a slash and starts with none, got 'data'; "
                "use data/"
            ],
        ),
        ([_link(imports=["NEW"])], ["f: links.0.imports must be some of new, changed, deleted, got NEW"]),
        (
            [_link(bucket="checkpoints")],
            [
                "f: links.0.bucket must be another bucket than the checkpoints': what Lustre exports late or deletes "
                "would be a lost checkpoint, got checkpoints; use the data bucket, or one of its own"
            ],
        ),
        (
            [_link(f"/{number}", f"{number}/") for number in range(9)],
            ["f: links must be at most 8: FSx links no more to one file system, got 9"],
        ),
    ],
)
def test_links_overlap_neither_on_the_file_system_nor_in_a_bucket(links: list[LinkWish], messages: list[str]) -> None:
    found = link_mistakes("f", links, name=_name, checkpoint_bucket="checkpoints")

    assert [str(one) for one in found] == messages


def test_the_facts_agree_with_the_model_of_the_api() -> None:
    model = get_session().get_service_model("fsx")
    lustre = model.shape_for("CreateFileSystemLustreConfiguration").members

    assert {"PERSISTENT_2", "SCRATCH_2"} <= set(lustre["DeploymentType"].enum)
    assert model.shape_for("StorageCapacity").metadata["max"] == MOST_GIB
    assert lustre["ThroughputCapacity"].metadata["max"] == TIERING_MOST_MBPS
    assert [event.lower() for event in model.shape_for("EventTypes").member.enum] == list(EVENTS)
    assert lustre["WeeklyMaintenanceStartTime"].metadata["pattern"].replace(":?", ":") == MAINTENANCE_PATTERN
    association = model.shape_for("DataRepositoryAssociation").documentation
    assert "excluding Intelligent-Tiering and <code>scratch_1</code>" in association
