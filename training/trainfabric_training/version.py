"""Which code runs: what a checkpoint says about its origin."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

_PACKAGES = ("trainfabric", "torch", "deepspeed")


def code_version() -> str:
    """Versions of this code and of what it computes with; nodes run it from an asset, where it is not installed."""
    return ", ".join(f"{package} {_version(package)}" for package in _PACKAGES)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
