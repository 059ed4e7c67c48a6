"""What can be wrong with what a user gave, as one family of errors.

Everything a user can mend derives from `TrainfabricError`; the command line prints it and leaves with exit status 2,
constructs translate it to `PropertyError`. `assert` is for our own bugs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

EXIT_USER_ERROR = 2


class TrainfabricError(Exception):
    """Something that whoever asked can mend; its text says how."""


@dataclass(frozen=True, kw_only=True)
class Mistake:
    """One broken rule: `<where>: <name> must be <rule>, got <got>; <remedy>`.

    Attributes:
        where: What was read: a file, a construct path, an S3 address.
        name: Path of the value inside it, such as `fleet.instance_type`.
        rule: Completes "must be …"; a rule that starts with "must " is printed as it stands.
        got: The offending value as text, or `None` where there is no value to show.
        remedy: What to do about it.
    """

    where: str
    name: str
    rule: str
    got: str | None = None
    remedy: str | None = None

    def __str__(self) -> str:
        rule = self.rule if self.rule.startswith("must ") else f"must be {self.rule}"
        text = f"{self.where}: {self.name} {rule}"
        if self.got is not None:
            text += f", got {self.got}"
        return f"{text}; {self.remedy}" if self.remedy else text


class InvalidInput(TrainfabricError, ValueError):
    """Input that breaks one or several rules, all of them reported together."""

    def __init__(self, mistakes: Iterable[Mistake]) -> None:
        self.mistakes = tuple(mistakes)
        super().__init__("\n".join(str(mistake) for mistake in self.mistakes))


class NotFound(TrainfabricError, LookupError):
    """Something asked for by name that does not exist."""


class Refused(TrainfabricError):
    """An action that would lose, overwrite or duplicate something, and was not taken."""


class Unreachable(TrainfabricError):
    """A service that does not answer, or that does not accept these credentials."""


def unreadable(where: object, name: str, error: Exception) -> InvalidInput:
    """The error about a file that is there and cannot be read: a directory, no permission, other bytes than text."""
    if isinstance(error, IsADirectoryError):
        got: object = "a directory"
    else:
        got = (error.strerror or str(error)).lower() if isinstance(error, OSError) else error
    return mistake(str(where), name, "a readable UTF-8 file", got)


def mistake(where: str, name: str, rule: str, got: object = None, remedy: str | None = None) -> InvalidInput:
    """An `InvalidInput` with a single mistake."""
    return InvalidInput(
        [Mistake(where=where, name=name, rule=rule, got=None if got is None else str(got), remedy=remedy)]
    )
