from __future__ import annotations

import hashlib
import os
import stat
import subprocess
import sys
import zipfile
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


def packed(path: Path) -> dict[str, bytes]:
    """What an archive holds, by name."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_the_packages_are_packed_without_being_imported(package: Path, tmp_path: Path) -> None:
    bundle.write_archive(tmp_path / "code.zip")

    assert packed(tmp_path / "code.zip")["tiny_package/__init__.py"] == b"raise RuntimeError('imported')\n"
    assert "tiny_package" not in sys.modules


def test_scripts_are_executable_and_nothing_else_is(package: Path, tmp_path: Path) -> None:
    (package / "__init__.py").chmod(0o777)

    bundle.write_archive(tmp_path / "code.zip")

    with zipfile.ZipFile(tmp_path / "code.zip") as archive:
        modes = {entry.filename: stat.filemode(entry.external_attr >> 16) for entry in archive.infolist()}
    assert modes == {"tiny_package/__init__.py": "-rw-r--r--", "tiny_package/boot/boot.sh": "-rwxr-xr-x"}


def test_litter_is_neither_packed_nor_hashed(package: Path, tmp_path: Path) -> None:
    clean = bundle.write_archive(tmp_path / "clean")
    (package / "__pycache__").mkdir()
    (package / "__pycache__/x.cpython-311.pyc").write_bytes(b"x")
    (package / ".DS_Store").write_bytes(b"x")
    (package / "boot/old.pyc").write_bytes(b"x")

    assert bundle.write_archive(tmp_path / "littered") == clean
    assert list(packed(tmp_path / "littered")) == ["tiny_package/__init__.py", "tiny_package/boot/boot.sh"]


def test_time_stamps_and_modes_change_neither_the_hash_nor_the_archive(package: Path, tmp_path: Path) -> None:
    first = bundle.write_archive(tmp_path / "first")
    os.utime(package / "__init__.py", (1, 1))
    (package / "__init__.py").chmod(0o600)

    assert bundle.write_archive(tmp_path / "second") == first
    assert (tmp_path / "second").read_bytes() == (tmp_path / "first").read_bytes()


@pytest.mark.parametrize("change", ["content", "name", "new file"])
def test_whatever_runs_on_the_node_changes_the_hash(package: Path, tmp_path: Path, change: str) -> None:
    first = bundle.write_archive(tmp_path / "first")
    if change == "content":
        (package / "__init__.py").write_text("")
    elif change == "name":
        (package / "__init__.py").rename(package / "__main__.py")
        (package / "__init__.py").write_text("")
    else:
        (package / "boot/more.sh").write_text("")

    assert bundle.write_archive(tmp_path / "second") != first


def test_a_package_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(bundle, "NODE_PACKAGES", ("trainfabric_absent",))

    with pytest.raises(NotFound) as refused:
        bundle.write_archive(tmp_path / "code.zip")

    assert str(refused.value) == (
        "training asset: package must be one of this installation, got trainfabric_absent; install trainfabric again"
    )


def test_the_hash_is_the_same_in_another_process_with_other_settings(tmp_path: Path) -> None:
    code = "import os, sys, pathlib; os.umask(0o077); from trainfabric_cdk.bundle import write_archive; "
    code += "print(write_archive(pathlib.Path(sys.argv[1])))"
    other = {**os.environ, "PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo", "LC_ALL": "C"}

    there = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "there")], env=other, text=True, capture_output=True, check=True
    )

    assert there.stdout.split()[-1] == bundle.write_archive(tmp_path / "here")


def test_the_asset_is_named_for_the_hash_and_holds_the_three_packages(stack: cdk.Stack, tmp_path: Path) -> None:
    asset = TrainingAsset(stack, "Code")

    # CDK hashes the hash that it is given once more.
    assert asset.asset_hash == hashlib.sha256(bundle.write_archive(tmp_path / "code.zip").encode()).hexdigest()
    assembly = cdk.App.of(stack).synth().directory
    copy = packed(Path(assembly) / f"asset.{asset.asset_hash}.zip")
    assert {name.partition("/")[0] for name in copy} == {"trainfabric_plan", "trainfabric_node", "trainfabric_training"}
    assert copy == packed(tmp_path / "code.zip")


def test_neither_torch_nor_the_node_packages_are_imported_by_the_constructs() -> None:
    code = (
        "import sys, trainfabric_cdk.bundle, trainfabric_cdk.fleet, trainfabric_cdk.cluster.parallelcluster\n"
        "print(sorted({name.split('.')[0] for name in sys.modules}"
        " & {'torch', 'boto3', 'trainfabric_node', 'trainfabric_training'}))"
    )

    done = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, check=True)

    assert done.stdout.strip() == "[]"
