"""The JSON Schema of the environment file, for completion and checks in editors.

`python -m trainfabric_plan.environment.schema PATH` writes it; a test holds the committed file against it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from trainfabric_plan.environment.types import Environment


def schema_text() -> str:
    """The schema as JSON, with a trailing newline."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **Environment.model_json_schema()}
    return json.dumps(schema, indent=2) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(schema_text(), encoding="utf-8")
