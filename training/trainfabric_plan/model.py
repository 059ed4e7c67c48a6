"""The base of every type that is read from outside: strict, frozen, unknown keys refused."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Strict(BaseModel):
    """A frozen value whose fields are exactly those declared; nothing is coerced between kinds."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
