"""The code that runs on the nodes, as one asset: the installed packages themselves, staged the same way everywhere."""

from __future__ import annotations

import hashlib
import importlib.util
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from aws_cdk import AssetHashType
from aws_cdk import aws_s3_assets as assets
from constructs import Construct

from trainfabric_plan.errors import NotFound

NODE_PACKAGES = ("trainfabric_plan", "trainfabric_node", "trainfabric_training")

_ARCHIVE = "code.zip"
_EXECUTABLE, _PLAIN = 0o100755, 0o100644
_NO_TIME = (1980, 1, 1, 0, 0, 0)
"""The earliest that an archive can say, so that all archives of the same files are the same."""


class TrainingAsset(assets.Asset):
    """`trainfabric_plan`, `trainfabric_node` and `trainfabric_training` as they are installed beside this package.

    One archive, because the CDK would copy 160 files and pack them again when it deploys. Its hash comes from names and
    contents alone, so that it is the same on every machine and Python version, from the source tree and from the wheel.
    The packages are found, not imported: neither torch nor boto3 is needed.

    Raises:
        NotFound: If one of the packages is not installed.
    """

    def __init__(self, scope: Construct, id: str) -> None:
        with tempfile.TemporaryDirectory(prefix="trainfabric-asset-") as staged:
            path = Path(staged, _ARCHIVE)
            fingerprint = write_archive(path)
            super().__init__(scope, id, path=str(path), asset_hash=fingerprint, asset_hash_type=AssetHashType.CUSTOM)


def write_archive(path: Path) -> str:
    """Pack the node packages into a zip file and return a hash of what they consist of.

    Raises:
        NotFound: If one of the packages is not installed.
    """
    digest = hashlib.sha256()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for package in NODE_PACKAGES:
            root = package_directory(package)
            for file in _sources(root):
                name = f"{package}/{file.relative_to(root).as_posix()}"
                content = file.read_bytes()
                digest.update(f"{name}\0{len(content)}\0".encode() + content)
                archive.writestr(_entry(name), content, compresslevel=1)
    return digest.hexdigest()


def package_directory(package: str) -> Path:
    """Where a package is installed; it is found, not imported.

    Raises:
        NotFound: If it is not installed.
    """
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise NotFound(
            f"training asset: package must be one of this installation, got {package}; install trainfabric again"
        )
    return Path(spec.origin).parent


def _sources(root: Path) -> Iterator[Path]:
    """Files of a package in a fixed order, without what Python, an editor or the file system left there."""
    for file in sorted(root.rglob("*"), key=lambda path: path.relative_to(root).as_posix()):
        parts = file.relative_to(root).parts
        litter = any(part == "__pycache__" or part.startswith(".") for part in parts) or file.suffix in (".pyc", ".pyo")
        if file.is_file() and not litter:
            yield file


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _NO_TIME)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.create_system = 3  # Unix, wherever it is made
    entry.external_attr = (_EXECUTABLE if name.endswith(".sh") else _PLAIN) << 16
    return entry
