"""The events and exit statuses of a job, for people.

`python -m trainfabric_plan.job_reference PATH` writes them as Markdown into a page, between its marks; a test holds the
committed page against them.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from pathlib import Path

from trainfabric_plan import contract
from trainfabric_plan.errors import mistake

_BLOCK = "<!-- {name}: written by python -m trainfabric_plan.job_reference docs/jobs.md -->\n\n"
_END = "\n<!-- end -->\n"


def with_reference(page: str) -> str:
    """The page with its tables as this version has them.

    Raises:
        InvalidInput: If the marks of a table are missing.
    """
    for name, table in (("events", events_table()), ("exit statuses", exit_statuses_table())):
        begin = _BLOCK.format(name=name)
        found = re.search(f"{re.escape(begin)}.*?{re.escape(_END)}", page, re.S)
        if found is None:
            raise mistake("page", name, f"between {begin.strip()} and {_END.strip()}", "no such lines")
        page = page[: found.start()] + begin + table + _END + page[found.end() :]
    return page


def events_table() -> str:
    """Every event with its meaning and its fields, a row each."""
    rows = ["| event | meaning and fields |", "|---|---|"]
    for name, text in _members("Event").items():
        rows.append(f"| `{contract.Event[name].value}` | {text} |")
    return "\n".join(rows) + "\n"


def exit_statuses_table() -> str:
    """Every exit status of the ranks and of the commands with its meaning, a row each."""
    rows = ["| status | name | meaning |", "|---|---|---|"]
    for name, text in _members("ExitStatus").items():
        rows.append(f"| {getattr(contract.ExitStatus, name)} | `{name}` | {text} |")
    return "\n".join(rows) + "\n"


def _members(name: str) -> dict[str, str]:
    """The members of a class of `contract` with the text that stands below each."""
    module = ast.parse(inspect.getsource(contract))
    (found,) = (node for node in module.body if isinstance(node, ast.ClassDef) and node.name == name)
    members: dict[str, str] = {}
    for node in found.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            members[node.targets[0].id] = ""
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and members:
            members[next(reversed(members))] = " ".join(str(node.value.value).replace("|", "\\|").split())
    return members


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(with_reference(path.read_text(encoding="utf-8")), encoding="utf-8")
