"""Unit files of systemd, read strictly: a directive without a stand-in for what it does is refused.

Source: systemd.unit(5), systemd.service(5), systemd.exec(5), systemd.kill(5), systemd.mount(5), systemd-system.conf(5).
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CONFIGURED = "etc/systemd/system"
OF_THE_IMAGE = "usr/lib/systemd/system"
SETTINGS_FILE = "etc/systemd/system.conf"
INFINITE = float("inf")

OBEYED = {
    "Unit": {"After", "RequiresMountsFor", "StartLimitIntervalSec", "StartLimitBurst"},
    "Service": {
        "Type",
        "ExecStart",
        "Environment",
        "EnvironmentFile",
        "Restart",
        "RestartSec",
        "KillMode",
        "TimeoutStopSec",
        "RemainAfterExit",
        "LimitMEMLOCK",
        "LimitNOFILE",
    },
    "Mount": {"What", "Where", "Type", "Options", "TimeoutSec"},
    "Install": {"WantedBy"},
}
WITHOUT_EFFECT = {
    "Unit": {"Description", "Documentation", "Wants"},
    "Service": {"TasksMax", "OOMPolicy"},
    "Mount": set[str](),
    "Install": set[str](),
}
"""Known, and nothing of a local node depends on them: the network is there, and there are no control groups."""

_UNITS_OF_TIME = {"ms": 0.001, "s": 1.0, "sec": 1.0, "min": 60.0, "h": 3600.0, "": 1.0}


class BadUnit(Exception):
    """A unit that the stand-in cannot run; the text says why."""


@dataclass(frozen=True, kw_only=True)
class Unit:
    """A service, or a mount, which is a service that runs `mount` once."""

    name: str
    command: list[str]
    """With absolute paths as on a real node."""
    kind: str
    """exec, simple or oneshot."""
    environment: dict[str, str] = field(default_factory=dict)
    environment_files: list[str] = field(default_factory=list)
    """Absolute paths; with a `-` in front the file may be missing."""
    restart: str = "no"
    restart_s: float = 0.1
    kill_mode: str = "control-group"
    stop_s: float = 90.0
    remains: bool = False
    """Whether it counts as active after its command has ended well."""
    limits: dict[str, float] = field(default_factory=dict)
    """Resource limits by the name that follows `Limit`."""
    after: frozenset[str] = frozenset()
    mounts: tuple[str, ...] = ()
    """Mount points without which it does not start."""
    start_interval_s: float = 10.0
    start_burst: int = 5
    wanted_by: tuple[str, ...] = ()


def read_unit(root: Path, name: str) -> Unit:
    """The unit of this name with its drop-ins, those of the image last.

    Raises:
        BadUnit: If there is none, or it says what the stand-in does not know.
    """
    for folder in (CONFIGURED, OF_THE_IMAGE):
        file = root / folder / name
        if file.is_file():
            parts = sorted((root / folder / f"{name}.d").glob("*.conf"))
            return _unit(name, [pair for part in (file, *parts) for pair in _directives(part)])
    raise BadUnit(f"Unit {name} not found.")


def default_environment(root: Path) -> dict[str, str]:
    """The variables that the manager's own settings give to every process."""
    file = root / SETTINGS_FILE
    if not file.exists():
        return {}
    values = [value for _, name, value in _lines(file) if name == "DefaultEnvironment"]
    return _assignments(values)


def read_environment_file(file: Path) -> dict[str, str]:
    """The variables in a file of `NAME=value` lines."""
    lines = [line.strip() for line in file.read_text().splitlines()]
    pairs = [line.split("=", 1) for line in lines if "=" in line and not line.startswith(("#", ";"))]
    return {name.strip(): "".join(shlex.split(value)) if value[:1] in "'\"" else value for name, value in pairs}


def escaped_path(path: str) -> str:
    """A path as a part of a unit's name, as `systemd-escape --path` has it."""
    parts = path.strip("/").replace("-", "\\x2d").replace("/", "-")
    return parts or "-"


def _lines(file: Path) -> Iterator[tuple[str, str, str]]:
    section = ""
    for line in file.read_text().replace("\\\n", " ").splitlines():
        text = line.strip()
        if text.startswith("["):
            section = text.strip("[]")
        elif text and not text.startswith(("#", ";")):
            name, _, value = text.partition("=")
            yield section, name.strip(), value.strip()


def _directives(file: Path) -> Iterator[tuple[str, str]]:
    for section, name, value in _lines(file):
        if name in OBEYED.get(section, ()):
            yield f"{section}.{name}", value
        elif name not in WITHOUT_EFFECT.get(section, ()):
            raise BadUnit(f"{file.name}: the stand-in for systemd does not know {name} in [{section}]")


def _unit(name: str, directives: list[tuple[str, str]]) -> Unit:
    given: dict[str, list[str]] = {}
    for key, value in directives:
        given[key] = [*given.get(key, []), value] if value else []  # an empty value takes back what was said
    last = {key: values[-1] for key, values in given.items() if values}
    common: dict[str, Any] = {
        "name": name,
        "after": frozenset(_words(given, "Unit.After")),
        "mounts": tuple(_words(given, "Unit.RequiresMountsFor")),
        "wanted_by": tuple(_words(given, "Install.WantedBy")),
    }
    return _mount(last, common) if name.endswith(".mount") else _service(given, last, common)


def _service(given: dict[str, list[str]], last: dict[str, str], common: dict[str, Any]) -> Unit:
    if "Service.ExecStart" not in last:
        raise BadUnit(f"{common['name']}: Service has no ExecStart= setting. Refusing.")
    return Unit(
        **common,
        command=shlex.split(last["Service.ExecStart"]),
        kind=last.get("Service.Type", "simple"),
        environment=_assignments(given.get("Service.Environment", [])),
        environment_files=given.get("Service.EnvironmentFile", []),
        restart=last.get("Service.Restart", "no"),
        restart_s=seconds(last.get("Service.RestartSec", "100ms")),
        kill_mode=last.get("Service.KillMode", "control-group"),
        stop_s=seconds(last.get("Service.TimeoutStopSec", "90")),
        remains=last.get("Service.RemainAfterExit", "no") in ("yes", "true", "1"),
        limits={key.partition(".Limit")[2]: _limit(value) for key, value in last.items() if ".Limit" in key},
        start_interval_s=seconds(last.get("Unit.StartLimitIntervalSec", "10")),
        start_burst=int(last.get("Unit.StartLimitBurst", "5")),
    )


def _mount(last: dict[str, str], common: dict[str, Any]) -> Unit:
    missing = [key for key in ("What", "Where", "Type") if f"Mount.{key}" not in last]
    if missing:
        raise BadUnit(f"{common['name']}: the mount must have {missing[0]}=")
    where = last["Mount.Where"]
    if common["name"] != f"{escaped_path(where)}.mount":
        raise BadUnit(f"{common['name']}: Where={where} does not match the unit's name")
    command = [f"/usr/sbin/mount.{last['Mount.Type']}", last["Mount.What"], where, "-o", last.get("Mount.Options", "")]
    return Unit(
        **common,
        command=command,
        kind="oneshot",
        remains=True,
        stop_s=seconds(last.get("Mount.TimeoutSec", "90")),
    )


def seconds(text: str) -> float:
    """A time span of systemd such as `1`, `100ms`, `2min 30s` or `infinity`."""
    if text == "infinity":
        return INFINITE
    total = 0.0
    for word in text.split():
        digits = word.rstrip("abcdefghijklmnopqrstuvwxyz")
        if word[len(digits) :] not in _UNITS_OF_TIME:
            raise BadUnit(f"a time span must be such as 100ms or 2min, got {text}")
        total += float(digits) * _UNITS_OF_TIME[word[len(digits) :]]
    return total


def _limit(text: str) -> float:
    return INFINITE if text == "infinity" else float(text)


def _words(given: dict[str, list[str]], key: str) -> list[str]:
    return [word for value in given.get(key, []) for word in value.split()]


def _assignments(values: list[str]) -> dict[str, str]:
    pairs = (word.partition("=") for value in values for word in shlex.split(value))
    return {name: value for name, _, value in pairs}
