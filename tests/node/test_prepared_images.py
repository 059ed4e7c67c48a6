"""What boot installs is what the page about images without internet says."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TOLD = {
    "install_python": "`python3.12`, `python3.11` or a `python3` of 3.11 or newer",
    "create_environment": "`/opt/trainfabric/venv`",
    "install_lustre_client": "`mount.lustre`",
    "add_lustre_repository": "FSx's package repository",
    "install_nfs_client": "`mount.nfs4`",
}
"""By function of boot.sh that installs something: where the page's table tells of it."""


def test_the_page_tells_of_everything_that_boot_would_install() -> None:
    boot = (ROOT / "training/trainfabric_node/boot/boot.sh").read_text(encoding="utf-8")
    page = (ROOT / "docs/how-to/run-without-internet.md").read_text(encoding="utf-8")
    functions = re.findall(r"^(\w+)\(\) \{\n(.*?)^\}", boot, flags=re.DOTALL | re.MULTILINE)

    installs = re.compile(r"^\s*(install_packages \S|.*\b(pip install|apt-get update|curl) )", flags=re.MULTILINE)
    found = {name for name, body in functions if name != "install_packages" and installs.search(body)}
    table = "\n".join(line for line in page.splitlines() if line.startswith("|"))
    assert found == set(TOLD)
    assert [told for told in TOLD.values() if told not in table] == []
