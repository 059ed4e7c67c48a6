"""Runs a module of the sandbox, by path: `python -I start.py MODULE ARGUMENT…`.

Not `python -m` with PYTHONPATH: what the module starts on a node would inherit that, and find our sources.
"""

from __future__ import annotations

import os
import runpy
import sys

if __name__ == "__main__":
    sys.path.insert(0, os.path.realpath(f"{__file__}/../../.."))
    module = sys.argv.pop(1)
    runpy.run_module(module, run_name="__main__", alter_sys=True)
