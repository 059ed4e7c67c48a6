"""The built wheel in a clean environment without torch: an example and the app of `trainfabric init` synthesise."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import venv
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOO_MUCH = {"torch", "deepspeed", "numpy", "moto", "tokenizers"}


def _requirements(name: str) -> set[str]:
    """Names of the distributions that `name` needs without extras, itself included."""
    found: set[str] = set()
    pending = [name]
    while pending:
        current = re.sub(r"[-_.]+", "-", pending.pop()).lower()
        if current in found:
            continue
        found.add(current)
        for requirement in metadata.requires(current) or []:
            if "extra ==" not in requirement and 'python_version < "3.11"' not in requirement:
                needed = re.match(r"[A-Za-z0-9._-]+", requirement)
                assert needed
                if _installed(needed.group()):
                    pending.append(needed.group())
    return found


def _installed(name: str) -> bool:
    try:
        metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def _link_distribution(name: str, site: Path) -> None:
    """Hard-link the files of an installed distribution: a real installation without downloading half a gigabyte."""
    for file in metadata.distribution(name).files or []:
        source, target = Path(str(file.locate())), site / str(file)
        wanted = source.is_file() and ".." not in file.parts
        if wanted and not target.exists():  # two distributions may share a file
            target.parent.mkdir(parents=True, exist_ok=True)
            _link(source, target)


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copy2(source, target)


@pytest.fixture(scope="module")
def clean_environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the wheel and what it declares, and nothing else; returns its bin folder."""
    directory = tmp_path_factory.mktemp("clean")
    wheels = directory / "wheels"
    build = ("--no-deps", "--no-build-isolation", "--wheel-dir", str(wheels), str(ROOT))
    subprocess.run([sys.executable, "-m", "pip", "wheel", "--quiet", *build], check=True)
    venv.create(directory / "venv", with_pip=True)
    python = directory / "venv/bin/python"
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for name in _requirements("trainfabric") - {"trainfabric"}:
        _link_distribution(name, directory / "venv/lib" / version / "site-packages")
    (wheel,) = wheels.glob("trainfabric-*.whl")
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", wheel], check=True)
    return python.parent


def _run(command: list[str | Path], directory: Path) -> str:
    keep = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "CDK_VALIDATION": "false"}
    quiet = {name: value for name, value in os.environ.items() if name.startswith("JSII_SILENCE")}
    done = subprocess.run(command, cwd=directory, env={**keep, **quiet}, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_clean_environment_has_no_torch_and_pip_finds_nothing_missing(clean_environment: Path) -> None:
    installed = _run([clean_environment / "python", "-m", "pip", "list", "--format=freeze"], ROOT)

    names = {line.split("==")[0].lower() for line in installed.splitlines()}
    assert "trainfabric" in names
    assert not names & TOO_MUCH
    assert "No broken requirements found" in _run([clean_environment / "python", "-m", "pip", "check"], ROOT)


def test_the_example_with_an_own_vpc_synthesises(clean_environment: Path, tmp_path: Path) -> None:
    app = tmp_path / "app"
    shutil.copytree(ROOT / "examples/bring_your_own_vpc", app, ignore=shutil.ignore_patterns("__pycache__", "cdk.out"))

    _synth(clean_environment, app, tmp_path / "out")

    assert list((tmp_path / "out").glob("*.template.json"))


def test_the_app_that_init_writes_synthesises(clean_environment: Path, tmp_path: Path) -> None:
    _run([clean_environment / "trainfabric", "init", "mine", "--name", "mine"], tmp_path)

    _synth(clean_environment, tmp_path / "mine", tmp_path / "out")

    templates = sorted(path.name for path in (tmp_path / "out").glob("*.template.json"))
    assert templates == [
        "mine-Fleet.template.json",
        "mine-Network.template.json",
        "mine-Observability.template.json",
        "mine-Storage.template.json",
    ]


def _synth(clean_environment: Path, app: Path, output: Path) -> None:
    cdk = ROOT / "node_modules/.bin/cdk"
    command = f"{clean_environment / 'python'} app.py"
    _run([cdk, "synth", "--quiet", "--no-notices", "--app", command, "--output", output], app)
