from __future__ import annotations

import base64
import subprocess
from pathlib import Path

import pytest

from sandbox.metadata import InstanceMetadata
from sandbox.node.programs.cloud_init import INSTANCE_ID, LOG, NotUnderstood, fetch, main, scripts

CONFIG = """\
#cloud-config
write_files:
- path: /etc/own.env
  permissions: '0600'
  content: |
    A=1
- path: /opt/encoded
  encoding: b64
  content: {encoded}
runcmd:
- 'echo "$A" >"$ROOT/first"'
- [sh, -c, 'echo "$0" >>"$ROOT/first"', two words]
"""


def test_files_are_written_below_the_root_and_commands_become_one_script(tmp_path: Path) -> None:
    encoded = base64.b64encode(b"any \x07 byte").decode()

    (script,) = scripts(tmp_path, CONFIG.format(encoded=encoded))

    assert ((tmp_path / "etc/own.env").read_text(), (tmp_path / "etc/own.env").stat().st_mode & 0o777) == (
        "A=1\n",
        0o600,
    )
    assert (tmp_path / "opt/encoded").read_bytes() == b"any \x07 byte"
    subprocess.run([script], env={"A": "one", "ROOT": str(tmp_path), "PATH": "/usr/bin:/bin"}, check=True)
    assert (tmp_path / "first").read_text() == "one\ntwo words\n"


def test_a_script_is_run_as_it_is(tmp_path: Path) -> None:
    (script,) = scripts(tmp_path, "#!/bin/sh\necho hello\n")

    assert subprocess.run([script], capture_output=True, text=True, check=True).stdout == "hello\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hello\n", "user data must begin with #cloud-config or #!, got 'hello\\n'"),
        ("#cloud-config\npackages: [x]\n", "cloud-config: the stand-in for cloud-init does not know packages"),
        (
            "#cloud-config\nwrite_files:\n- {path: /x, append: true}\n",
            "write_files: the stand-in for cloud-init does not know append",
        ),
        (
            "#cloud-config\nwrite_files:\n- {path: /x, encoding: gz}\n",
            "write_files: encoding must be b64 or text/plain, got gz",
        ),
        (
            "#cloud-config\nwrite_files:\n- {path: /x, owner: me:me}\n",
            "write_files: owner must be root:root, got me:me",
        ),
    ],
)
def test_what_cloud_init_would_do_otherwise_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(NotUnderstood) as failure:
        scripts(tmp_path, text)

    assert str(failure.value) == message


def test_the_instances_own_user_data_is_run_and_what_it_says_is_logged(tmp_path: Path) -> None:
    text = "#cloud-config\nruncmd: [echo out, echo err >&2, exit 3]\n"
    with InstanceMetadata("127.77.1.2", {"instance-id": "i-1"}, text) as metadata:
        assert fetch(metadata.endpoint, "user-data") == text
        assert main(tmp_path, metadata.endpoint) == 1

    assert (tmp_path / LOG).read_text() == "out\nerr\n"
    assert (tmp_path / INSTANCE_ID).read_text() == "i-1\n"


def test_user_data_that_is_not_understood_is_logged(tmp_path: Path) -> None:
    with InstanceMetadata("127.77.1.3", {"instance-id": "i-1"}, "#cloud-config\nusers: []\n") as metadata:
        assert main(tmp_path, metadata.endpoint) == 1

    assert (tmp_path / LOG).read_text() == (
        "cloud-init: cloud-config: the stand-in for cloud-init does not know users\n"
    )
