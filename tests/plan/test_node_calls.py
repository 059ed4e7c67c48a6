"""The table of what nodes call is held against the code that calls."""

from __future__ import annotations

import re
from pathlib import Path

from trainfabric_plan.node_calls import NODE_CALLS, endpoint_calls

NODE = Path(__file__).parents[2] / "training"
CODE = [*(NODE / "trainfabric_node").rglob("*.py"), *(NODE / "trainfabric_training").rglob("*.py")]
SCRIPTS = sorted((NODE / "trainfabric_node/boot").glob("*.sh"))

CLIENT = re.compile(r"""(?:aws_client|_client|client|create_client|resource)\(\s*["']([a-z0-9-]+)["']""")
PROGRAM = re.compile(r"\baws ([a-z0-9-]+) [a-z-]+")

NOT_ON_NODES = {"ec2": "jobs/pins.py: whoever starts a job pins its launch templates; nodes have no permission for it"}

CALLED = {calls.service for calls in NODE_CALLS}


def services_of(files: list[Path], pattern: re.Pattern[str]) -> set[str]:
    return {service for file in files for service in pattern.findall(file.read_text())}


def test_every_service_that_node_code_makes_a_client_of_has_a_row() -> None:
    found = services_of(CODE, CLIENT)

    assert {"s3", "ssm", "autoscaling", "cloudwatch"} <= found
    assert found - CALLED == set(NOT_ON_NODES)


def test_every_service_that_boot_scripts_call_has_a_row() -> None:
    found = services_of(SCRIPTS, PROGRAM)

    assert {"s3", "ssm", "autoscaling"} <= found
    assert found <= CALLED


def test_what_boot_fetches_from_elsewhere_is_what_a_prepared_image_holds() -> None:
    outside = {
        line.strip()
        for script in SCRIPTS
        for line in script.read_text().splitlines()
        if re.search(r"\b(curl|wget|pip install|apt-get (update|install)|dnf install)\b", line)
        and not line.lstrip().startswith("#")
    }

    assert outside == {
        "DEBIAN_FRONTEND=noninteractive retry 5 10 apt-get update -q",
        'DEBIAN_FRONTEND=noninteractive retry 5 10 apt-get install -qy "$@"',
        'retry 5 10 dnf install -qy "$@"',
        'retry 5 10 "$venv/bin/python" -m pip install --quiet --no-input --requirement "$lock"',
        'retry 5 10 curl -fsSLo "$root$key" \\',
        "retry 5 10 apt-get update -q",
    }


def test_endpoints_follow_from_the_calls() -> None:
    usual = ["ssm", "ssmmessages", "autoscaling", "monitoring", "sqs"]

    assert [calls.endpoint for calls in endpoint_calls()] == usual
    assert [calls.endpoint for calls in endpoint_calls(containers=True)] == [*usual, "ecr.api", "ecr.dkr"]
