"""Rules over the storage of an environment."""

from __future__ import annotations

from typing import Any

import pytest

from trainfabric_plan.environment import validate_environment

KEY = "arn:aws:kms:us-east-1:123456789012:key/0f8e7d6c-0000-4000-8000-000000000000"
FILE_SYSTEM = "fs-0123456789abcdef0"


@pytest.mark.parametrize(
    ("changes", "messages"),
    [
        pytest.param(
            {"storage.lustre.file_system_id": FILE_SYSTEM},
            [
                "demo.yaml: storage.lustre.mount_name must be given together with its counterpart, got nothing; add "
                "storage.lustre.mount_name, or leave both out and trainfabric makes the file system"
            ],
            id="half of a file system",
        ),
        pytest.param(
            {
                "storage.lustre.file_system_id": FILE_SYSTEM,
                "storage.lustre.mount_name": "abcdefgh",
                "storage.lustre.capacity_gib": 1200,
            },
            [
                "demo.yaml: storage.lustre.capacity_gib must be left out for a file system that exists already, "
                "got 1200; remove storage.lustre.capacity_gib; the file system stays as it is"
            ],
            id="size of an existing file system",
        ),
        pytest.param(
            {"storage.shared_home": "efs", "storage.lustre.mount_point": "/shared"},
            [
                "demo.yaml: storage.lustre.mount_point must be outside of /shared, where the nodes mount the shared "
                "home, got /shared; use /fsx, or have no shared home"
            ],
            id="Lustre in the place of the shared home",
        ),
        pytest.param(
            {"storage.shared_home": "openzfs", "storage.lustre.mount_point": "/shared/fsx"},
            [
                "demo.yaml: storage.lustre.mount_point must be outside of /shared, where the nodes mount the shared "
                "home, got /shared/fsx; use /fsx, or have no shared home"
            ],
            id="Lustre below the shared home",
        ),
        pytest.param(
            {"storage.lustre.security_group_id": "sg-12345678"},
            [
                "demo.yaml: storage.lustre.security_group_id must be given only with an existing file system, got "
                "sg-12345678; remove it, or add storage.lustre.file_system_id and mount_name"
            ],
            id="group of a file system that is made",
        ),
        pytest.param(
            {
                "storage.lustre.deployment": "intelligent_tiering",
                "storage.lustre.throughput_mbps": 4000,
                "storage.lustre.links": [{"path": "/data", "prefix": "data/"}],
            },
            [
                "demo.yaml: storage.lustre.links must be left out with intelligent_tiering, which FSx links to no "
                "bucket, got 1; use deployment: persistent_2, or copy the data to the file system"
            ],
            id="links of Intelligent-Tiering",
        ),
        pytest.param(
            {"storage.data_bucket": {"name": "ours"}, "storage.checkpoint_bucket": {"name": "ours"}},
            [
                "demo.yaml: storage.data_bucket must be another bucket than the checkpoints': what Lustre exports late "
                "or deletes would be a lost checkpoint, got ours; use the data bucket, or one of its own"
            ],
            id="one bucket for both",
        ),
        pytest.param(
            {
                "storage.lustre.links": [
                    {"path": "/data", "prefix": "data/"},
                    {"path": "/data/more", "prefix": "more/"},
                ]
            },
            [
                "demo.yaml: storage.lustre.links.1.path must be outside of the directory of "
                "storage.lustre.links.0.path (/data), and not around it, got /data/more"
            ],
            id="a link inside of another",
        ),
        pytest.param(
            {"storage.kms_key_arn": KEY, "storage.lustre.deployment": "scratch_2"},
            [
                f"demo.yaml: storage.kms_key_arn must be left out with scratch_2, which FSx encrypts with a key of its "
                f"own, got {KEY}; use deployment: persistent_2"
            ],
            id="key of a scratch file system",
        ),
        pytest.param(
            {"storage.kms_key_arn": KEY, "orchestrator": "parallelcluster"},
            [
                "demo.yaml: storage.kms_key_arn must be left out with parallelcluster: its nodes' role gets buckets, "
                f"no keys, got {KEY}; remove storage.kms_key_arn, or use orchestrator: fleet"
            ],
            id="key of a Slurm cluster",
        ),
        pytest.param(
            {"storage.lustre.efa": True, "fleet.efa": False},
            [
                "demo.yaml: storage.lustre.efa must be false while fleet.efa is off: the nodes would reach the file "
                "system over TCP, got true; remove storage.lustre.efa"
            ],
            id="Lustre over EFA for nodes without",
        ),
        pytest.param(
            {"storage.shared_home": "openzfs", "orchestrator": "parallelcluster"},
            [
                "demo.yaml: storage.shared_home must be efs with parallelcluster, which mounts OpenZFS only where the "
                "ports of NFS 3 are open as well, got openzfs; use efs"
            ],
            id="a home that ParallelCluster does not mount",
        ),
        pytest.param(
            {"storage.shared_home": "nfs"},
            ["demo.yaml: storage.shared_home must be one of 'efs' or 'openzfs', got 'nfs'"],
            id="shared home of another kind",
        ),
    ],
)
def test_storage_that_cannot_work_is_refused_with_a_remedy(
    mistakes: Any, changes: dict[str, Any], messages: list[str]
) -> None:
    assert mistakes(changes) == messages


def another(key: str, old: str, new: str) -> str:
    return key.replace(old, new)


@pytest.mark.parametrize("elsewhere", [another(KEY, "us-east-1", "eu-west-1"), another(KEY, "arn:aws:", "arn:aws-cn:")])
@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("storage.kms_key_arn", lambda key: {"storage.kms_key_arn": key}),
        ("storage.data_bucket.kms_key_arn", lambda key: {"storage.data_bucket": {"name": "ours", "kms_key_arn": key}}),
        (
            "storage.checkpoint_bucket.kms_key_arn",
            lambda key: {"storage.checkpoint_bucket": {"name": "ours", "kms_key_arn": key}},
        ),
        (
            "storage.lustre.links.0.bucket.kms_key_arn",
            lambda key: {
                "storage.lustre.links": [
                    {"path": "/ours", "prefix": "ours/", "bucket": {"name": "ours", "kms_key_arn": key}}
                ]
            },
        ),
    ],
)
def test_a_key_of_another_region_or_partition_is_refused(mistakes: Any, name: str, given: Any, elsewhere: str) -> None:
    assert mistakes(given(elsewhere)) == [
        f"demo.yaml: {name} must be a KMS key in us-east-1 of partition aws, got {elsewhere}; use a key of that region"
    ]


def test_a_key_of_another_account_is_taken(environment_data: Any) -> None:
    key = another(KEY, "123456789012", "210987654321")

    given = validate_environment(environment_data({"storage.kms_key_arn": key}), "demo.yaml")

    assert given.storage.kms_key_arn == key


@pytest.mark.parametrize(
    "lustre",
    [
        {"file_system_id": FILE_SYSTEM, "mount_name": "abcdefgh"},
        {"deployment": "intelligent_tiering", "throughput_mbps": 4000},
    ],
)
def test_checkpoints_are_in_another_bucket_than_the_data_whatever_is_linked(mistakes: Any, lustre: Any) -> None:
    ours = {"name": "ours"}

    assert mistakes({"storage": {"lustre": lustre, "data_bucket": ours, "checkpoint_bucket": ours}}) == [
        "demo.yaml: storage.checkpoint_bucket.name must be another bucket than storage.data_bucket, which Lustre "
        "caches, got ours; use two buckets"
    ]
