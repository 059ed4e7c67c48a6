from __future__ import annotations

import os
import subprocess
import sys

from tests.node.imds import running_imds


def run(command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    arguments = [sys.executable, "-m", "trainfabric_training.launch", command]
    return subprocess.run(arguments, env={**os.environ, **variables}, capture_output=True, text=True, timeout=60)


def test_wrong_settings_are_told_before_anything_is_imported() -> None:
    ran = run("launcher", TRAINFABRIC_RENDEZVOUS_PORT="none")

    assert ran.returncode == 2
    assert ran.stderr == (
        "node settings: TRAINFABRIC_RENDEZVOUS_PORT must be a port from 1 to 65535, got none; "
        "correct /etc/trainfabric/node.env, which the user data writes\n"
    )


def test_a_store_without_an_address_says_whom_it_asked() -> None:
    with running_imds() as imds:
        del imds.values["local-ipv4"]
        ran = run("rendezvous", AWS_EC2_METADATA_SERVICE_ENDPOINT=imds.endpoint)

    assert ran.returncode == 2
    assert ran.stderr == (
        f"{imds.endpoint}: instance metadata must answer for local-ipv4, got 404 not found; "
        "is this an EC2 instance with the metadata service on?\n"
    )
