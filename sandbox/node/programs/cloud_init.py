"""`cloud-init` on a local node: fetches the user data from the metadata service and does what it says.

As far as ours goes: `#cloud-config` with `write_files` and `runcmd`, or a script. Sources: cloud-init's reference,
modules "Write Files" and "Runcmd" (files first; the commands as one script of /bin/sh, which goes on after a failure).
"""

from __future__ import annotations

import base64
import json
import shlex
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import yaml

SCRIPTS = "var/lib/cloud/instance/scripts"
INSTANCE_ID = "var/lib/cloud/data/instance-id"
"""Where cloud-init keeps it (its explanation of "boot stages" and "instance metadata")."""

LOG = "var/log/cloud-init-output.log"
HEADER = "#cloud-config"


class NotUnderstood(Exception):
    """User data that the stand-in would run otherwise than cloud-init does, or not at all."""


def fetch(endpoint: str, name: str) -> str:
    """What the metadata service says, by IMDSv2, such as `user-data`."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    lifetime = {"X-aws-ec2-metadata-token-ttl-seconds": "60"}
    asked = urllib.request.Request(f"{endpoint}/latest/api/token", headers=lifetime, method="PUT")
    with opener.open(asked, timeout=10) as answer:
        token = answer.read().decode()
    asked = urllib.request.Request(f"{endpoint}/latest/{name}", headers={"X-aws-ec2-metadata-token": token})
    with opener.open(asked, timeout=10) as answer:
        text: str = answer.read().decode()
    return text


def scripts(root: Path, user_data: str) -> list[Path]:
    """Write what the user data says below the root; the scripts to run, in order.

    Raises:
        NotUnderstood: For other kinds of user data, and modules and options that have no stand-in.
    """
    if user_data.startswith("#!"):
        return [_script(root, "part-001", user_data)]
    if user_data.partition("\n")[0].strip() != HEADER:
        raise NotUnderstood(f"user data must begin with {HEADER} or #!, got {user_data[:40]!r}")
    config = yaml.safe_load(user_data) or {}
    _known("cloud-config", config, {"write_files", "runcmd"})
    for item in config.get("write_files", []):
        _write(root, item)
    commands = config.get("runcmd", [])
    if not commands:
        return []
    lines = [command if isinstance(command, str) else shlex.join(map(str, command)) for command in commands]
    return [_script(root, "runcmd", "\n".join(["#!/bin/sh", *lines]) + "\n")]


def _write(root: Path, item: dict[str, Any]) -> None:
    _known("write_files", item, {"path", "content", "encoding", "permissions", "owner"})
    if item.get("owner", "root:root") != "root:root":
        raise NotUnderstood(f"write_files: owner must be root:root, got {item['owner']}")
    content = str(item.get("content", "")).encode()
    encoding = item.get("encoding", "text/plain")
    if encoding in ("b64", "base64"):
        content = base64.b64decode(content, validate=True)
    elif encoding != "text/plain":
        raise NotUnderstood(f"write_files: encoding must be b64 or text/plain, got {encoding}")
    file = root / str(item["path"]).lstrip("/")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    file.chmod(int(str(item.get("permissions", "0644")), 8))


def _script(root: Path, name: str, text: str) -> Path:
    file = root / SCRIPTS / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(0o700)
    return file


def _known(where: str, given: dict[str, Any], names: set[str]) -> None:
    unknown = sorted(given.keys() - names)
    if unknown:
        raise NotUnderstood(f"{where}: the stand-in for cloud-init does not know {', '.join(unknown)}")


def main(root: Path, endpoint: str) -> int:
    """Run the node's user data; 1 if a script failed, which the log tells."""
    log = root / LOG
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        try:
            _write(root, {"path": INSTANCE_ID, "content": fetch(endpoint, "meta-data/instance-id") + "\n"})
            made = scripts(root, fetch(endpoint, "user-data"))
        except (NotUnderstood, OSError, ValueError) as error:
            output.write(f"cloud-init: {error}\n".encode())
            return 1
        output.flush()
        ended = [subprocess.run([script], stdout=output, stderr=output, check=False).returncode for script in made]
    print(json.dumps({"scripts": [script.name for script in made], "exit statuses": ended}))
    return int(any(ended))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2]))
