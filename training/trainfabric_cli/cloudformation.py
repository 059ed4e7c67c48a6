"""Reading CloudFormation templates as people write them: JSON, or YAML with the short forms of intrinsic functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from trainfabric_plan.errors import NotFound, mistake, unreadable
from trainfabric_plan.lint import Template, is_cluster, template_of_cluster
from trainfabric_plan.lint.cloud_assembly import template_from, too_deep


class _Loader(yaml.SafeLoader):
    """YAML as CloudFormation reads it: short tags become functions, and a date stays the text that it is."""


_Loader.yaml_implicit_resolvers = {
    letter: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for letter, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _function(loader: _Loader, tag: str, node: yaml.Node) -> Any:
    """`!Ref X` is `{"Ref": "X"}`, `!GetAtt X.Arn` is `{"Fn::GetAtt": ["X", "Arn"]}`, `!Name …` is `{"Fn::Name": …}`."""
    value: Any
    if isinstance(node, yaml.ScalarNode):
        value = loader.construct_scalar(node)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    else:
        assert isinstance(node, yaml.MappingNode)
        value = loader.construct_mapping(node, deep=True)
    if tag == "GetAtt" and isinstance(value, str):
        value = value.split(".", 1)
    return {tag if tag in ("Ref", "Condition") else f"Fn::{tag}": value}


_Loader.add_multi_constructor("!", _function)


def read_template(path: Path, parameters: Mapping[str, str] | None = None) -> Template:
    """The template in a file, with the lines of its values; a configuration of ParallelCluster as a template's cluster.

    Raises:
        NotFound: If there is no such file.
        InvalidInput: If it is no CloudFormation template.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise NotFound(f"{path}: template must be an existing file or directory, got none") from None
    except (OSError, UnicodeDecodeError) as error:
        raise unreadable(path, "the template", error) from None
    loader = _Loader(text)
    try:
        root = loader.get_single_node()
        body = loader.construct_document(root) if root is not None else None
    except RecursionError:
        raise too_deep(str(path)) from None
    except (yaml.YAMLError, ValueError, TypeError) as error:
        raise mistake(str(path), "the template", "valid YAML or JSON", " ".join(str(error).split())) from None
    if is_cluster(body):
        return template_of_cluster(body, str(path), _locator(root))
    return template_from(body, str(path), parameters=dict(parameters or {}), locate=_locator(root))


def _locator(root: yaml.Node | None) -> Callable[[tuple[str | int, ...]], int | None]:
    def locate(path: tuple[str | int, ...]) -> int | None:
        """Line of the value at a path, or of what is left of the path in the file."""
        node, line = root, None
        for step in path:
            found = _inside(node, step)
            if found is None:
                break
            node, line = found
        return line

    return locate


def _inside(node: yaml.Node | None, step: str | int) -> tuple[yaml.Node, int] | None:
    if node is not None and node.tag == f"!{step}".replace("Fn::", ""):
        return node, node.start_mark.line + 1  # the short form of the function is the value itself
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == step:
                return value, key.start_mark.line + 1
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        item = node.value[step]
        return item, item.start_mark.line + 1
    return None
