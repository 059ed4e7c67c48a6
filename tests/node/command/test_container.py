from __future__ import annotations

from pathlib import Path

from trainfabric_node.command.container import (
    Devices,
    container_name,
    devices_of,
    docker_list,
    docker_login,
    docker_remove,
    docker_run,
    ecr_password,
)


def test_a_container_gets_the_network_the_accelerators_and_efa_of_its_node() -> None:
    line = docker_run(
        name=container_name("gpt", 7),
        image="nvcr.io/nvidia/nemo:25.09",
        command="exec torchrun train.py",
        variables=("MASTER_ADDR", "NNODES"),
        devices=Devices(paths=("/dev/infiniband/uverbs0", "/dev/infiniband/uverbs1"), nvidia=True),
        mounts=(Path("/fsx"), Path("/var/lib/trainfabric/code/0a")),
        directory=Path("/var/lib/trainfabric/code/0a"),
    )

    assert " ".join(line) == (
        "docker run --rm --init --name trainfabric-gpt-7 --label trainfabric --network host --ipc host "
        "--ulimit memlock=-1:-1 --ulimit stack=67108864 --cap-add IPC_LOCK "
        "--device /dev/infiniband/uverbs0 --device /dev/infiniband/uverbs1 --gpus all "
        "--volume /fsx:/fsx --volume /var/lib/trainfabric/code/0a:/var/lib/trainfabric/code/0a "
        "--env MASTER_ADDR --env NNODES --env TINI_KILL_PROCESS_GROUP=1 --workdir /var/lib/trainfabric/code/0a "
        "--entrypoint /bin/sh nvcr.io/nvidia/nemo:25.09 -c exec torchrun train.py"
    )
    assert line[-1] == "exec torchrun train.py"


def test_an_image_without_a_code_folder_starts_where_it_says_itself() -> None:
    line = docker_run(
        name="a", image="b:1", command="./run", variables=(), devices=Devices(), mounts=(), directory=None
    )

    assert not {"--workdir", "--gpus", "--device", "--volume"} & set(line)


def test_the_devices_of_a_node_are_found(tmp_path: Path) -> None:
    for name in ("infiniband/uverbs0", "neuron0", "neuron1", "nvidiactl", "null"):
        (tmp_path / "dev" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "dev" / name).touch()

    found = devices_of(tmp_path)

    assert found == Devices(
        paths=tuple(f"{tmp_path}/dev/{name}" for name in ("infiniband/uverbs0", "neuron0", "neuron1")), nvidia=True
    )
    assert devices_of(tmp_path / "none") == Devices()


def test_a_registry_of_ecr_is_logged_in_to_without_the_password_on_a_command_line() -> None:
    assert ecr_password("us-east-2") == ["aws", "ecr", "get-login-password", "--region", "us-east-2"]
    assert docker_login("1.dkr.ecr.us-east-2.amazonaws.com") == [
        *("docker", "login", "--username", "AWS", "--password-stdin", "1.dkr.ecr.us-east-2.amazonaws.com")
    ]


def test_containers_are_found_by_their_label_and_killed() -> None:
    assert docker_list() == ["docker", "ps", "--all", "--quiet", "--filter", "label=trainfabric"]
    assert docker_remove(["1f", "2f"]) == ["docker", "rm", "--force", "1f", "2f"]
