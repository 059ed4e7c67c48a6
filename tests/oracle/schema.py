"""Runs in the virtual environment of ParallelCluster: its keys as data, and what its schema says of configurations.

`python schema.py keys` prints every key; `python schema.py load` reads a list of configurations and prints what is
wrong with each, `null` if nothing is.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from typing import Any

os.environ.setdefault("AWS_DEFAULT_REGION", "us-east-1")

from marshmallow import ValidationError, fields  # type: ignore[import-not-found]
from pcluster.schemas.cluster_schema import ClusterSchema  # type: ignore[import-not-found]


def rows(schema: Any, section: str) -> Iterator[dict[str, Any]]:
    """Every key below a section."""
    for name, field in schema.fields.items():
        path = f"{section}.{field.data_key or name}".lstrip(".")
        inner = field.inner if isinstance(field, fields.List) else field
        rules = [*field.validators, *(inner.validators if inner is not field else [])]
        yield {
            "path": path,
            "type": type(inner).__name__,
            "many": isinstance(field, fields.List) or getattr(field, "many", False),
            "required": field.required,
            "policy": field.metadata["update_policy"].name,
            "values": [str(one) for rule in rules for one in getattr(rule, "choices", ())],
            "pattern": next((rule.regex.pattern for rule in rules if hasattr(rule, "regex")), None),
            "least": next((rule.min for rule in rules if getattr(rule, "min", None) is not None), None),
            "most": next((rule.max for rule in rules if getattr(rule, "max", None) is not None), None),
        }
        if isinstance(inner, fields.Nested):
            yield from rows(inner.schema, path)


def complaint(configuration: dict[str, Any]) -> Any:
    """What the schema says of a configuration."""
    try:
        ClusterSchema(cluster_name="c").load(configuration)
    except ValidationError as error:
        return error.messages
    return None


if __name__ == "__main__":
    if sys.argv[1] == "keys":
        json.dump(list(rows(ClusterSchema(cluster_name="c"), "")), sys.stdout)
    else:
        json.dump([complaint(one) for one in json.load(sys.stdin)], sys.stdout)
