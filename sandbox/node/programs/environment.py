"""`python3 -m venv` and `pip install --requirement` on a local node: an environment with the lock's packages only.

Packages are links to those that this machine has installed in the versions that the lock names; what it lacks (CUDA) is
written down as left out. So a module that the lock forgets is missing on a local node as on a real one.

`environment.py create PYTHON FOLDER` makes an empty one; in it, `python -m pip install` runs this file.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import sys
from pathlib import Path

INSTALLED = "installed.json"
"""In the environment's folder: `installed` and `left_out`, names with versions."""


def create(python: str, folder: Path) -> None:
    """An environment without any package but this `pip`; what makes it one is pyvenv.cfg (PEP 405)."""
    place = Path(python).resolve()
    pip = _packages(folder) / "pip"
    pip.mkdir(parents=True)
    (folder / "bin").mkdir()
    for name in ("python", "python3"):
        (folder / "bin" / name).symlink_to(place)
    (folder / "pyvenv.cfg").write_text(f"home = {place.parent}\ninclude-system-site-packages = false\n")
    command = [sys.executable, "-I", __file__, "pip"]
    run = f"os.execv({sys.executable!r}, [*{command!r}, sys.prefix, *sys.argv[1:]])"
    (pip / "__main__.py").write_text(f"import os, sys\n{run}\n")


def install(folder: Path, arguments: list[str]) -> int:
    """`pip install [--quiet] [--no-input] --requirement FILE` in the environment at `folder`."""
    command, *rest = [word for word in arguments if word not in ("--quiet", "--no-input", "--no-deps")]
    if command != "install" or len(rest) != 2 or rest[0] not in ("-r", "--requirement"):
        print(f"ERROR: the stand-in for pip does not know: {' '.join(arguments)}", file=sys.stderr)
        return 2
    lines = [line.partition("#")[0].strip() for line in Path(rest[1]).read_text().splitlines()]
    wanted = [line for line in lines if line]
    unpinned = [line for line in wanted if not re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.]+", line)]
    if unpinned:
        print(f"ERROR: a lock must pin one version a line, got {unpinned[0]}", file=sys.stderr)
        return 1
    installed = [line for line in wanted if _link(_packages(folder), folder / "bin", *line.split("=="))]
    found = {"installed": installed, "left_out": sorted(set(wanted) - set(installed))}
    (folder / INSTALLED).write_text(json.dumps(found, indent=1))
    return 0


def _link(packages: Path, programs: Path, name: str, version: str) -> bool:
    """Link a distribution's files into the environment, if this machine has it in this version."""
    try:
        found = importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    if found.version.partition("+")[0] != version:
        return False
    here = Path(str(found.locate_file("")))
    for part in _top_level(found):
        target = programs / part.removeprefix("bin/") if part.startswith("bin/") else packages / part
        source = here.parents[2] / part if part.startswith("bin/") else here / part
        if source.exists() and not target.exists():
            target.symlink_to(source)
    return True


def _top_level(distribution: importlib.metadata.Distribution) -> set[str]:
    """First parts of the paths of its files; `bin/NAME` for its programs."""
    record = distribution.read_text("RECORD") or ""
    names = {line.split(",")[0].strip('"') for line in record.splitlines()}
    own = {name for name in names if "__pycache__" not in name}
    programs = {name[len("../../../") :] for name in own if name.startswith("../../../bin/")}
    return programs | {name.partition("/")[0] for name in own if not name.startswith("..")}


def _packages(folder: Path) -> Path:
    major, minor = sys.version_info[:2]
    return folder / "lib" / f"python{major}.{minor}" / "site-packages"


def main(arguments: list[str]) -> int:
    """See the module."""
    verb, *rest = arguments
    if verb == "create":
        create(rest[0], Path(rest[1]))
        return 0
    return install(Path(rest[0]), rest[1:])


if __name__ == "__main__":
    os.umask(0o022)
    sys.exit(main(sys.argv[1:]))
