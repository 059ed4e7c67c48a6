"""A machine with its init and the units of a test, without user data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sandbox.node.control import ask
from sandbox.node.init import TARGET
from sandbox.node.machine import QUICK, install
from sandbox.node.units import CONFIGURED
from sandbox.processes import Child, Children, wait_until


def alive(pid: int) -> bool:
    """Whether a process runs."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


@dataclass(frozen=True)
class Machine:
    """A machine whose init runs."""

    root: Path
    child: Child

    def systemctl(self, verb: str, *units: str) -> tuple[int, str]:
        return ask(self.root, verb, *units)

    def pid(self, unit: str) -> int:
        return int(self.systemctl("show", unit)[1])

    def journal(self, unit: str) -> str:
        file = self.root / "var/log/journal" / f"{unit}.log"
        return file.read_text() if file.exists() else ""

    def write(self, path: str, text: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def unit(self, name: str, text: str) -> None:
        """Install a unit file."""
        self.write(f"{CONFIGURED}/{name}", text)

    def wait_for_lines(self, path: str, count: int) -> list[str]:
        """The lines of a file below the root, once there are so many."""
        file = self.root / path

        def there() -> bool:
            return file.exists() and file.read_text().count("\n") >= count

        wait_until(there, timeout_s=15, what=f"{count} lines in {path}")
        return file.read_text().splitlines()


def start_machine(children: Children, root: Path, enabled: dict[str, str] | None = None) -> Machine:
    """A machine that starts these units as it comes up."""
    root.mkdir(parents=True)
    variables = {"TRAINFABRIC_ROOT": str(root), "PATH": f"{root}/usr/bin:{root}/usr/sbin", "GREETING": "good morning"}
    lustre = root.parent / "lustre"
    lustre.mkdir(exist_ok=True)
    install(root, hostname="node-1", efa_devices=0, accelerators=["one"], environment=variables, lustre=lustre)
    wanted = root / CONFIGURED / f"{TARGET}.wants"
    (wanted / "cloud-init.service").unlink()
    for name, text in (enabled or {}).items():
        (root / CONFIGURED / name).write_text(text)
        (wanted / name).symlink_to(Path("..") / name)
    child = children.start(
        "init", [*QUICK, "sandbox.node.init", str(root)], log=root.parent / "console.log", grace_s=20
    )
    machine = Machine(root, child)
    wait_until((root / "run/systemd-private").exists, timeout_s=15, what="the init", child=child)
    return machine
