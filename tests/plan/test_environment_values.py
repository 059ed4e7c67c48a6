"""Values of the environment file that look right and are not."""

from __future__ import annotations

from typing import Any

import pytest

from trainfabric_plan.environment import validate_environment
from trainfabric_plan.mount_points import OF_THE_SYSTEM, PARENTS, mount_point_problem

KEY = "arn:aws:kms:us-east-1:123456789012:key/0f8e7d6c-0000-4000-8000-000000000000"
SLURM = {"orchestrator": "parallelcluster"}
IMAGE = {"fleet.ami_id": "ami-0123456789abcdef0", "parallelcluster.version": "3.16.1"}
MOUNT_POINT = r"^(/[A-Za-z0-9_][A-Za-z0-9_-]*)+$"
HIDES = "a directory that nothing else uses: mounting there hides files of the system"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {**SLURM, "parallelcluster.head_node_instance_type": "m7i.2xlrage"},
            "parallelcluster.head_node_instance_type must be a type of the catalog, got m7i.2xlrage; did you mean "
            "m7i.2xlarge or m7i.24xlarge? docs/how-to/add-an-instance-type.md says how to add one",
        ),
        (
            {"fleet.max_spot_price": 12.5, "fleet.workers": "on_demand"},
            "fleet.max_spot_price must be given only for spot workers, got 12.5 with workers on_demand; "
            "remove it, or set fleet.workers: spot",
        ),
        ({"fleet.max_spot_price": float("inf")}, "fleet.max_spot_price must be a finite number, got inf"),
        ({"fleet.max_spot_price": float("nan")}, "fleet.max_spot_price must be a finite number, got nan"),
        (
            {"fleet.root_device": "/dev/xvda"},
            "fleet.root_device must be /dev/sda1, the root device of the default image, got /dev/xvda; "
            "remove it, or add fleet.ami_id",
        ),
        (
            {**SLURM, **IMAGE, "fleet.root_device": "/dev/xvda"},
            "fleet.root_device must be left out with parallelcluster, which reads it off the image, got /dev/xvda; "
            "remove fleet.root_device",
        ),
        ({"fleet.root_device": "xvda"}, "fleet.root_device must be text that matches ^/dev/[a-z0-9]+$, got 'xvda'"),
        (
            {"storage.data_bucket": {"name": "our-data", "kms_key_arn": "alias/ours"}},
            r"storage.data_bucket.kms_key_arn must be text that matches "
            r"^arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:key/[A-Za-z0-9-]+$, got 'alias/ours'",
        ),
        (
            {**SLURM, "storage.data_bucket": {"name": "our-data", "kms_key_arn": KEY}},
            "storage.data_bucket.kms_key_arn must be left out with parallelcluster: its nodes' role gets buckets, no "
            f"keys, got {KEY}; use a bucket that S3's own keys encrypt, or orchestrator: fleet",
        ),
    ],
)
def test_a_value_that_deploys_and_then_fails_is_refused(mistakes: Any, changes: dict[str, Any], message: str) -> None:
    assert mistakes(changes) == [f"demo.yaml: {message}"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"parallelcluster.head_node_instance_type": "m7g.2xlarge"},
            "x86_64, as p5.48xlarge is: a cluster has one, got m7g.2xlarge, which is arm64; use m7i.2xlarge",
        ),
        (
            {"fleet.instance_type": "hpc7g.16xlarge", "fleet.workers": "on_demand"},
            "arm64, as hpc7g.16xlarge is: a cluster has one, got m7i.2xlarge, which is x86_64; use m7g.2xlarge",
        ),
    ],
)
def test_a_head_node_of_another_architecture_than_the_nodes_is_refused(
    mistakes: Any, changes: dict[str, Any], message: str
) -> None:
    assert mistakes({**SLURM, **changes}) == [
        f"demo.yaml: parallelcluster.head_node_instance_type must be of architecture {message}"
    ]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"parallelcluster.static_nodes": 5}, "static_nodes must be at most the 4 of nodes, got 5"),
        (
            {
                "parallelcluster.static_nodes": 1,
                "fleet.workers": "capacity_block",
                "fleet.reservation": "cr-0123456789abcdef0",
            },
            "static_nodes must be left out for a Capacity Block, whose nodes are all static, got 1",
        ),
        (
            {
                "parallelcluster.gpu_health_checks": True,
                "fleet.instance_type": "hpc7a.96xlarge",
                "fleet.workers": "on_demand",
            },
            "gpu_health_checks must be off for hpc7a.96xlarge, which has no GPUs of NVIDIA, got true",
        ),
        (
            {"parallelcluster.ssh_from": "10.20.0.5/16"},
            "ssh_from must be a range of IPv4 addresses that begins at its first, such as 10.20.0.0/16, or a prefix "
            "list (pl-…), got '10.20.0.5/16'",
        ),
        (
            {"parallelcluster.permissions_boundary": "boundary"},
            r"permissions_boundary must be text that matches ^arn:aws[a-z-]*:iam::\d{12}:policy/\S+$, got 'boundary'",
        ),
    ],
)
def test_settings_of_slurm_that_parallelcluster_refuses_are_refused(
    mistakes: Any, changes: dict[str, Any], message: str
) -> None:
    assert mistakes({**SLURM, **changes}) == [f"demo.yaml: parallelcluster.{message}"]


def test_an_image_for_slurm_needs_the_release_that_it_was_built_for(mistakes: Any, environment_data: Any) -> None:
    image = {"fleet.ami_id": "ami-12345678"}

    assert mistakes({**SLURM, **image}) == [
        "demo.yaml: parallelcluster.version must be given beside fleet.ami_id: the release that the image was built "
        'for, got nothing; such as parallelcluster.version: "3.16.1"'
    ]
    for sound in ({**SLURM, **image, "parallelcluster.version": "3.16.1"}, SLURM, image):
        validate_environment(environment_data(sound), "demo.yaml")


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("a..b", "a bucket name without a dot beside a dot or a hyphen"),
        ("a.-b", "a bucket name without a dot beside a dot or a hyphen"),
        ("a-.b", "a bucket name without a dot beside a dot or a hyphen"),
        ("192.168.5.4", "a bucket name, not an IP address"),
        ("xn--data", "a bucket name without a prefix that S3 reserves (xn--, sthree-, amzn-s3-demo-)"),
        (
            "data-s3alias",
            "a bucket name without a suffix that S3 reserves (-s3alias, --ol-s3, .mrap, --x-s3, --table-s3)",
        ),
    ],
)
def test_a_bucket_name_that_s3_refuses_is_refused(mistakes: Any, name: str, rule: str) -> None:
    assert mistakes({"storage.data_bucket": {"name": name}}) == [
        f"demo.yaml: storage.data_bucket.name must be {rule}, got {name!r}"
    ]


@pytest.mark.parametrize("name", ["our.data", "10.20.30.data", "data-s3alias-2"])
def test_a_bucket_name_that_only_resembles_one_that_s3_refuses_is_taken(environment_data: Any, name: str) -> None:
    data = environment_data({"storage.data_bucket": {"name": name}})

    bucket = validate_environment(data, "demo.yaml").storage.data_bucket
    assert bucket and bucket.name == name


@pytest.mark.parametrize("path", ["/", "//", "/fsx/", "/a//b", "fsx", "/a b", "/.."])
def test_a_mount_point_that_is_no_plain_path_is_refused(mistakes: Any, path: str) -> None:
    assert mistakes({"storage.lustre.mount_point": path}) == [
        f"demo.yaml: storage.lustre.mount_point must be text that matches {MOUNT_POINT}, got {path!r}"
    ]


@pytest.mark.parametrize("path", [*OF_THE_SYSTEM, *PARENTS, "/usr/bin", "/opt/slurm/etc", "/var/lib"])
def test_a_mount_point_that_hides_the_system_is_refused(mistakes: Any, path: str) -> None:
    assert mistakes({"storage.lustre.mount_point": path}) == [
        f"demo.yaml: storage.lustre.mount_point must be {HIDES}, got {path}; use /fsx, or a directory below /mnt"
    ]


@pytest.mark.parametrize("path", ["/fsx", "/mnt/lustre", "/home/shared", "/optional", "/usr2", "/opt/data"])
def test_other_directories_can_be_mounted_over(path: str) -> None:
    assert mount_point_problem(path) is None


def test_every_directory_that_parallelcluster_refuses_is_refused() -> None:
    theirs = [
        "/bin",
        "/boot",
        "/dev",
        "/etc",
        "/lib",
        "/lib64",
        "/media",
        "/mnt",
        "/opt",
        "/opt/parallelcluster",
        "/opt/parallelcluster/shared",
        "/opt/parallelcluster/shared_login_nodes",
        "/opt/slurm",
        "/opt/intel",
        "/proc",
        "/root",
        "/run",
        "/sbin",
        "/srv",
        "/sys",
        "/tmp",
        "/usr",
        "/var",
    ]

    assert len(theirs) == 23
    assert [path for path in theirs if mount_point_problem(path) is None] == []


@pytest.mark.parametrize(
    ("tags", "messages"),
    [
        (
            {"aws:x": "1"},
            [
                "tags.aws:x must be a key that does not start with aws:, parallelcluster: or trainfabric:, got aws:x; "
                "choose another key"
            ],
        ),
        (
            {"Trainfabric:role": "boss"},
            [
                "tags.Trainfabric:role must be a key that does not start with aws:, parallelcluster: or trainfabric:, "
                "got Trainfabric:role; choose another key"
            ],
        ),
        (
            {f"key-{index}": "x" for index in range(49)},
            ["tags must be at most 48 tags: AWS takes 50, of which trainfabric sets two, got 49; remove some"],
        ),
        ({"k" * 129: "x"}, [f"tags.{'k' * 129} must be a key of 1 to 128 characters, got 129"]),
        ({"": "x"}, ["tags. must be a key of 1 to 128 characters, got 0"]),
        ({"key": "v" * 257}, ["tags.key must be at most 256 characters, got 257"]),
        ({"key": "a*b"}, ["tags.key must be of letters, digits, spaces and _ . : / = + - @, got 'key: a*b'"]),
    ],
)
def test_tags_that_aws_refuses_or_that_are_ours_are_refused(
    mistakes: Any, tags: dict[str, str], messages: list[str]
) -> None:
    assert mistakes({"tags": tags}) == [f"demo.yaml: {message}" for message in messages]


def test_as_many_and_as_long_tags_as_aws_takes_beside_ours_are_taken(environment_data: Any) -> None:
    tags = {f"{index:02}".ljust(128, "k"): "é" * 256 for index in range(48)}

    assert len(validate_environment(environment_data({"tags": tags}), "demo.yaml").tags) == 48


def test_an_image_of_amazon_linux_names_its_root_device(environment_data: Any) -> None:
    data = environment_data({"fleet.ami_id": "ami-0123456789abcdef0", "fleet.root_device": "/dev/xvda"})

    assert validate_environment(data, "demo.yaml").fleet.root_device == "/dev/xvda"
