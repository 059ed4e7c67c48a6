"""Reading an environment file; the one place of the package that knows YAML."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import yaml

from trainfabric_plan.environment.types import Environment
from trainfabric_plan.environment.validate import validate_environment
from trainfabric_plan.errors import InvalidInput, Mistake, NotFound, mistake, unreadable


def read_environment(path: Path | str) -> Environment:
    """The environment in a YAML file.

    Raises:
        NotFound: If there is no such file.
        InvalidInput: With every mistake in it, each with its line.
    """
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise NotFound(
            f"{file}: environment file must be an existing file, got none; trainfabric init writes one"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise unreadable(file, "the file", error) from None
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise mistake(str(file), "the file", "valid YAML", " ".join(str(error).split())) from None
    repeated = _repeated_keys(root, str(file))
    if repeated:
        raise InvalidInput(repeated)
    return validate_environment(data, str(file), _locator(root, str(file)))


def _locator(root: yaml.Node | None, file: str) -> Callable[[tuple[str, ...]], str]:
    def locate(path: tuple[str, ...]) -> str:
        node, line = root, None
        for part in path:
            pairs = node.value if isinstance(node, yaml.MappingNode) else []
            match = next(((key, value) for key, value in pairs if key.value == part), None)
            if match is None:
                break
            line, node = match[0].start_mark.line + 1, match[1]
        return file if line is None else f"{file}:{line}"

    return locate


def _repeated_keys(root: yaml.Node | None, file: str) -> list[Mistake]:
    """Every key that a mapping holds twice; YAML readers keep the last one silently."""
    found: list[tuple[int, tuple[str, ...]]] = []
    todo: list[tuple[yaml.Node | None, tuple[str, ...]]] = [(root, ())]
    done: set[int] = set()
    while todo:
        node, path = todo.pop()
        if not isinstance(node, yaml.MappingNode) or id(node) in done:
            continue  # an alias leads to a node that is done already, perhaps in a circle
        done.add(id(node))
        seen: set[str] = set()
        for key, value in node.value:
            here = (*path, str(key.value))
            if here[-1] in seen:
                found.append((key.start_mark.line + 1, here))
            seen.add(here[-1])
            todo.append((value, here))
    return [_repeated(f"{file}:{line}", path) for line, path in sorted(found)]


def _repeated(where: str, path: tuple[str, ...]) -> Mistake:
    return Mistake(where=where, name=".".join(path), rule="given once", got="twice", remedy="remove one of them")
