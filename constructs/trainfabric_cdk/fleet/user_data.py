"""What a node runs first, as cloud-init reads it: who the node is, and the script that fetches the training code.

The scripts are those of `trainfabric_node/boot`, read as files: `first-boot.sh` hands over to the `boot.sh` of the
training asset. Paths are those of a real node; the scripts put `TRAINFABRIC_ROOT` in front of them, empty there.
"""

from __future__ import annotations

import base64
import textwrap
from collections.abc import Mapping, Sequence

from aws_cdk import Fn, Token, Tokenization
from constructs import IConstruct

from trainfabric_cdk.bundle import package_directory
from trainfabric_cdk.errors import is_known, property_error
from trainfabric_plan.contract import NodeVariable, Paths

LIMIT_BYTES = 16_384
"""Most bytes of user data that EC2 takes, counted before base64 (EC2 API, RunInstances)."""

TOKEN_BYTES = 255
"""What a value known only at deploy time may grow to: a DNS name has at most 253 bytes, a bucket's name 63."""

PARAMETER_BYTES = 4096
"""What a token in the user's own commands may grow to: a CloudFormation parameter's most bytes (quotas, 2026)."""

_FIRST_BOOT = f"{Paths.INSTALL}/first-boot.sh"
_COMMON = f"{Paths.INSTALL}/common.sh"
_COMMANDS = f"{Paths.INSTALL}/boot-commands.sh"


def user_data(variables: Mapping[str, str], commands: Sequence[str] = ()) -> str:
    """The cloud-config for a node with these variables (names of `contract.NodeVariable`).

    Args:
        variables: Lines of the node's environment file.
        commands: Shell commands to run once the training code is there, before its boot script, with the variables set.
            Whatever they write is meant to lie below `${TRAINFABRIC_ROOT:-}`.
    """
    lines = [
        "#cloud-config",
        "write_files:",
        *_file(Paths.NODE_ENVIRONMENT, "0600", "".join(f"{name}={value}\n" for name, value in variables.items())),
        *_file(_COMMON, "0644", _script("common.sh")),
        *_file(_FIRST_BOOT, "0755", _script("first-boot.sh")),
        *(_commands_file(commands) if commands else ()),
        "runcmd:",
        f"""- 'bash "${{{NodeVariable.ROOT}:-}}{_FIRST_BOOT}"'""",
    ]
    return "\n".join(lines) + "\n"


def _file(path: str, permissions: str, text: str) -> list[str]:
    """A file to write, its text as a literal block: what a line of it says stands in a line of the user data."""
    return [*_file_head(path, permissions), "  content: |", *textwrap.indent(text, "    ").splitlines()]


def _file_head(path: str, permissions: str) -> list[str]:
    return [f"- path: {path}", f"  permissions: '{permissions}'"]


def _script(name: str) -> str:
    """A script of the node package without its comments and empty lines, which would count against the limit."""
    shebang, *lines = (package_directory("trainfabric_node") / "boot" / name).read_text().splitlines()
    return "\n".join([shebang, *(line for line in lines if line.strip() and not line.lstrip().startswith("#"))]) + "\n"


def _commands_file(commands: Sequence[str]) -> list[str]:
    text = _commands_text(commands)
    if not _is_encoded(commands):
        return _file(_COMMANDS, "0644", text)
    encoded = Fn.base64(text) if not is_known(text) else base64.b64encode(text.encode()).decode()
    return [*_file_head(_COMMANDS, "0644"), "  encoding: b64", f"  content: {encoded}"]


def _commands_text(commands: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in ("# shellcheck shell=bash", *commands))


def _is_encoded(commands: Sequence[str]) -> bool:
    """Whether a literal block could not hold them: tokens may have several lines, and YAML bars some characters."""
    text = _commands_text(commands)
    return not is_known(text) or not all(letter in "\n\t" or letter.isprintable() for letter in text)


def worst_case_bytes(script: str, commands: Sequence[str] = ()) -> int:
    """Size of user data once every token in it has become as long as it can.

    Args:
        script: The whole user data.
        commands: The part of it that the user gave, whose tokens may be anything.
    """
    unresolved = not is_known(_commands_text(commands))
    ours = len(Tokenization.reverse_string(script).tokens) - unresolved  # base64 of all commands is one token
    of_the_user = 4 * -(-_longest(_commands_text(commands), PARAMETER_BYTES) // 3) if unresolved else 0
    return _longest(script, 0) + ours * TOKEN_BYTES + of_the_user


def _longest(text: str, token_bytes: int) -> int:
    tokens = Tokenization.reverse_string(text).tokens
    placeholders = sum(len(Token.as_string(token).encode()) for token in tokens)
    return len(text.encode()) - placeholders + token_bytes * len(tokens)


def refuse_too_large(scope: IConstruct, script: str, commands: Sequence[str] = ()) -> None:
    """EC2 refuses user data over 16,384 bytes at launch, long after a deploy that looked well; CDK does not check.

    Raises:
        PropertyError: If the user data could exceed the limit.
    """
    size = worst_case_bytes(script, commands)
    if size >= LIMIT_BYTES:
        raise property_error(
            scope,
            "boot_commands",
            f"short enough for user data under {LIMIT_BYTES} bytes",
            f"{size} bytes with every token at its longest",
            "put long scripts into the image or into a bucket",
        )


def check_commands(scope: IConstruct, commands: Sequence[str]) -> None:
    """A command may be a token; a list that is one has no elements yet, and CDK refuses it where the text is joined.

    Raises:
        PropertyError: If the commands as a whole are known only when deployed.
    """
    if not is_known(list(commands)):
        remedy = 'give one command for it, such as Fn.join("\\n", commands)'
        raise property_error(scope, "boot_commands", "a list of commands", "a token for all of them", remedy)
