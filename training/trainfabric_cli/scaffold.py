"""The files of a new app: templates that are filled in and written all together or not at all."""

from __future__ import annotations

from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from string import Template

from trainfabric_plan.environment import validate_environment
from trainfabric_plan.environment.schema import schema_text
from trainfabric_plan.errors import InvalidInput, Mistake, Refused, mistake

_FILES = {
    "app.py": "app.py",
    "cdk.json": "cdk.json",
    "requirements.txt": "requirements.txt",
    "README.md": "README.md",
    ".gitignore": "gitignore",
}
"""Files of the app and the templates they are made from."""


def environment_file(name: str) -> Path:
    """Path of the environment's file inside the app."""
    return Path("environments") / f"{name}.yaml"


def write(directory: Path, name: str, region: str) -> list[Path]:
    """Write a new app and return its files, relative to `directory`.

    Raises:
        InvalidInput: If name or region cannot be used, or the directory cannot be written.
        Refused: If one of the files exists already; nothing is written then.
    """
    _check(name, region)
    contents = _contents(name, region)
    existing = [str(file) for file in contents if (directory / file).exists()]
    if existing:
        raise Refused(
            f"{directory}: {', '.join(existing)} must not exist yet, got existing files; "
            "choose another directory or move them away"
        )
    try:
        for file, text in contents.items():
            (directory / file).parent.mkdir(parents=True, exist_ok=True)
            (directory / file).write_text(text, encoding="utf-8")
    except OSError as error:
        raise mistake(str(directory), "the directory", "one that can be written", error.strerror or error) from error
    return list(contents)


def _contents(name: str, region: str) -> dict[Path, str]:
    values = {"name": name, "region": region, "version": version("trainfabric")}
    contents = {Path(file): _filled(template, values) for file, template in _FILES.items()}
    contents[environment_file(name)] = _filled("environment.yaml", values)
    contents[Path("environments") / "environment.schema.json"] = schema_text()
    return contents


def _filled(template: str, values: dict[str, str]) -> str:
    text = files("trainfabric_cli").joinpath("templates", f"{template}.template").read_text(encoding="utf-8")
    return Template(text).substitute(values)


def _check(name: str, region: str) -> None:
    """Name and region by the rules of the environment file, reported as options of this command."""
    probe = {
        "name": name,
        "region": region,
        "availability_zone": f"{region}a",
        "fleet": {"instance_type": "p5.48xlarge", "nodes": 1},
        "training": {"recipe": "tiny_cpu"},
    }
    try:
        validate_environment(probe, "trainfabric init")
    except InvalidInput as error:
        raise InvalidInput(
            Mistake(where=found.where, name=f"--{found.name}", rule=found.rule, got=found.got, remedy=found.remedy)
            for found in error.mistakes
            if found.name in probe
        ) from None
