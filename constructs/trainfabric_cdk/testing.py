"""For snapshot tests of apps that use these constructs."""

from __future__ import annotations

import json
import re
from typing import Any

from aws_cdk import Stack
from aws_cdk.assertions import Template

_ASSET_HASH = re.compile(r"\b[0-9a-f]{64}\b")


def normalised_template(stack: Stack) -> dict[str, Any]:
    """The template of a stack with every asset hash replaced, so that code on the nodes may change without notice."""
    text = json.dumps(Template.from_stack(stack).to_json())
    template: dict[str, Any] = json.loads(_ASSET_HASH.sub("ASSET", text))
    return template
