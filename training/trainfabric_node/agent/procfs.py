"""What the kernel tells about a process, and what Python does in it."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

GONE = "XZ"
"""States of a process that has ended: dead, or only waiting for its parent to look."""

STOPPED = "Tt"
"""States of a process that a signal or a debugger has stopped."""

_PY_SPY = "py-spy"
_STACK_S = 10.0


def process_state(pid: int) -> str:
    """The state of a process as `ps` shows it, such as `R`; `X` if there is none (proc(5), stat)."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return "X"
    return stat.rpartition(")")[2].split()[0]


def stacks(pids: Mapping[int, int], within_s: float = _STACK_S) -> dict[int, str]:
    """What Python is doing in processes, without stopping them; what the kernel knows where py-spy does not work.

    Args:
        pids: Process ids by whatever names them.
        within_s: For all of them together.
    """
    spy = py_spy()
    if spy is None:
        return {name: kernel_view(pid) for name, pid in pids.items()}
    deadline = time.monotonic() + within_s
    asked = {name: _ask(spy, pid) for name, pid in pids.items()}
    return {name: _answer(process, deadline) or kernel_view(pids[name]) for name, process in asked.items()}


def py_spy() -> str | None:
    """The py-spy of this environment: its files are asked for, as its folder of commands may be another's."""
    try:
        files = metadata.files(_PY_SPY) or []
    except metadata.PackageNotFoundError:
        files = []
    beside = next((str(Path(str(file.locate())).resolve()) for file in files if file.name == _PY_SPY), None)
    return beside if beside and Path(beside).exists() else shutil.which(_PY_SPY)


def kernel_view(pid: int) -> str:
    """State and place in the kernel of a process, as far as we may see them."""
    shown = [_of_status(pid), *(_shown(pid, name) for name in ("wchan", "stack"))]
    return "\n".join(filter(None, shown)) or "the process is gone"


def _ask(spy: str, pid: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [spy, "dump", "--nonblocking", "--pid", str(pid)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def _answer(process: subprocess.Popen[str], deadline: float) -> str:
    with process:
        try:
            text, _ = process.communicate(timeout=max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            return ""
    return text.strip() if process.returncode == 0 else ""


def _of_status(pid: int) -> str:
    lines = _text(pid, "status").splitlines()
    return "\n".join(line for line in lines if line.startswith(("State:", "SigPnd:", "VmRSS:")))


def _shown(pid: int, name: str) -> str:
    text = _text(pid, name).strip()
    return f"{name}: {text}" if text and text != "0" else ""


def _text(pid: int, name: str) -> str:
    try:
        return Path(f"/proc/{pid}/{name}").read_text(errors="replace")
    except OSError:
        return ""
