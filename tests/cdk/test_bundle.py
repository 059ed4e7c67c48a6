from __future__ import annotations

import hashlib
import os
import stat
import subprocess
import sys
from pathlib import Path

import aws_cdk as cdk
import pytest

from trainfabric_cdk import TrainingAsset, bundle
from trainfabric_plan.errors import NotFound


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of two files that stands for the node packages."""
    root = tmp_path / "site" / "tiny_package"
    (root / "boot").mkdir(parents=True)
    (root / "__init__.py").write_text("raise RuntimeError('imported')\n")
    (root / "boot" / "boot.sh").write_text("#!/bin/bash\n")
    monkeypatch.syspath_prepend(str(root.parent))
    monkeypatch.setattr(bundle, "NODE_PACKAGES", ("tiny_package",))
    return root


def staged_files(target: Path) -> list[str]:
    return sorted(str(file.relative_to(target)) for file in target.rglob("*") if file.is_file())


def test_the_packages_are_staged_without_being_imported(package: Path, tmp_path: Path) -> None:
    bundle.stage(tmp_path)

    assert (tmp_path / "tiny_package/__init__.py").read_text() == "raise RuntimeError('imported')\n"
    assert "tiny_package" not in sys.modules


def test_scripts_are_executable_and_nothing_else_is(package: Path, tmp_path: Path) -> None:
    (package / "__init__.py").chmod(0o777)

    bundle.stage(tmp_path)

    modes = {name: stat.S_IMODE((tmp_path / "tiny_package" / name).stat().st_mode) for name in ("__init__.py", "boot")}
    assert modes == {"__init__.py": 0o644, "boot": 0o755}
    assert stat.S_IMODE((tmp_path / "tiny_package/boot/boot.sh").stat().st_mode) == 0o755


def test_litter_is_neither_staged_nor_hashed(package: Path, tmp_path: Path) -> None:
    clean = bundle.stage(tmp_path / "clean")
    (package / "__pycache__").mkdir()
    (package / "__pycache__/x.cpython-311.pyc").write_bytes(b"x")
    (package / ".DS_Store").write_bytes(b"x")
    (package / "boot/old.pyc").write_bytes(b"x")

    assert bundle.stage(tmp_path / "littered") == clean
    assert staged_files(tmp_path / "littered") == ["tiny_package/__init__.py", "tiny_package/boot/boot.sh"]


def test_time_stamps_and_modes_do_not_change_the_hash(package: Path, tmp_path: Path) -> None:
    first = bundle.stage(tmp_path / "first")
    os.utime(package / "__init__.py", (1, 1))
    (package / "__init__.py").chmod(0o600)

    assert bundle.stage(tmp_path / "second") == first


@pytest.mark.parametrize("change", ["content", "name", "new file"])
def test_whatever_runs_on_the_node_changes_the_hash(package: Path, tmp_path: Path, change: str) -> None:
    first = bundle.stage(tmp_path / "first")
    if change == "content":
        (package / "__init__.py").write_text("")
    elif change == "name":
        (package / "__init__.py").rename(package / "__main__.py")
        (package / "__init__.py").write_text("")
    else:
        (package / "boot/more.sh").write_text("")

    assert bundle.stage(tmp_path / "second") != first


def test_a_package_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(bundle, "NODE_PACKAGES", ("trainfabric_absent",))

    with pytest.raises(NotFound) as refused:
        bundle.stage(tmp_path)

    assert str(refused.value) == (
        "training asset: package must be one of this installation, got trainfabric_absent; install trainfabric again"
    )


def test_the_hash_is_the_same_in_another_process_with_other_settings(tmp_path: Path) -> None:
    code = "import os, sys, pathlib; os.umask(0o077); from trainfabric_cdk.bundle import stage; "
    code += "print(stage(pathlib.Path(sys.argv[1])))"
    other = {**os.environ, "PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo", "LC_ALL": "C"}

    there = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "there")], env=other, text=True, capture_output=True, check=True
    )

    assert there.stdout.split()[-1] == bundle.stage(tmp_path / "here")


def test_the_asset_is_named_for_the_hash_and_holds_the_three_packages(stack: cdk.Stack, tmp_path: Path) -> None:
    asset = TrainingAsset(stack, "Code")

    # CDK hashes the hash that it is given once more.
    assert asset.asset_hash == hashlib.sha256(bundle.stage(tmp_path).encode()).hexdigest()
    assembly = cdk.App.of(stack).synth().directory
    (copy,) = Path(assembly).glob(f"asset.{asset.asset_hash}")
    assert {path.name for path in copy.iterdir()} == {"trainfabric_plan", "trainfabric_node", "trainfabric_training"}
    assert staged_files(copy) == staged_files(tmp_path)


def test_neither_torch_nor_the_node_packages_are_imported_by_the_constructs() -> None:
    code = (
        "import sys, trainfabric_cdk.bundle, trainfabric_cdk.fleet, trainfabric_cdk.cluster.parallelcluster\n"
        "print(sorted({name.split('.')[0] for name in sys.modules}"
        " & {'torch', 'boto3', 'trainfabric_node', 'trainfabric_training'}))"
    )

    done = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, check=True)

    assert done.stdout.strip() == "[]"
