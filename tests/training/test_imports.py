"""The import contracts see every room of the trainer, also those that are built later."""

from __future__ import annotations

import pkgutil
import tomllib
from pathlib import Path

import trainfabric_training

CONTRACT = "deepspeed is imported in the engine alone"


def test_every_room_but_the_engine_is_kept_from_deepspeed() -> None:
    settings = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    contracts = {one["name"]: one for one in settings["tool"]["importlinter"]["contracts"]}
    rooms = {module.name for module in pkgutil.iter_modules(trainfabric_training.__path__, "trainfabric_training.")}

    assert set(contracts[CONTRACT]["source_modules"]) == rooms - {"trainfabric_training.engine"}
