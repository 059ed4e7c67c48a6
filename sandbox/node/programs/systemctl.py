"""`systemctl` on a local node, as far as the boot script and whoever looks after a node call it."""

from __future__ import annotations

import sys
from pathlib import Path

from sandbox.node.control import VERBS, ask

IGNORED = {"--quiet", "--value", "--property", "MainPID", "--property=MainPID"}


def main(root: Path, arguments: list[str]) -> int:
    """Pass the request on to the node's init, unit after unit; 4 if it does not run, 5 for what it lacks."""
    quiet = "--quiet" in arguments
    verb, *units = [word for word in arguments if word not in IGNORED] or [""]
    if verb not in VERBS or any(word.startswith("-") for word in units):
        print(f"systemctl: the stand-in does not know: {' '.join(arguments)}", file=sys.stderr)
        return 5
    status = 0
    for asked in [[unit] for unit in units] or [[]]:
        try:
            one, text = ask(root, verb, *asked)
        except OSError as error:
            print(f"systemctl: {error}", file=sys.stderr)
            return 4
        status = status or one
        if text and not quiet:
            print(text, file=sys.stderr if one and verb != "is-active" else sys.stdout)
    return status


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
