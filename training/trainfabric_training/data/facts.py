"""What a corpus says about itself in the `.json` beside its `.bin` and `.idx`."""

from __future__ import annotations

import hashlib
from typing import Annotated

from pydantic import Field, ValidationError

from trainfabric_plan.errors import InvalidInput, Mistake
from trainfabric_plan.model import Strict

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class CorpusFacts(Strict):
    """Facts of a prepared corpus; the same text, vocabulary and library give the same facts on any machine."""

    documents: Annotated[int, Field(ge=1)]
    """Documents, each ended by the end-of-document token."""
    tokens: Annotated[int, Field(ge=1)]
    """Tokens over all documents, end tokens included."""
    vocabulary: Annotated[int, Field(ge=1)]
    """Entries of the tokenizer; every token is below it."""
    skipped: Annotated[int, Field(ge=0)]
    """Source files that were empty or not UTF-8."""
    bin_sha256: Sha256
    """Hash of the `.bin` file: little-endian tokens, one document after the other."""
    idx_sha256: Sha256
    """Hash of the `.idx` file."""
    tokenizer_sha256: Sha256
    """Hash of the `.tokenizer.json` file."""

    @property
    def identity(self) -> str:
        """Name of this content, for caches: changes whenever a byte of `.bin` or `.idx` changes."""
        return hashlib.sha256(f"{self.bin_sha256} {self.idx_sha256}".encode()).hexdigest()[:32]


def read_facts(data: bytes, where: str) -> CorpusFacts:
    """The facts in the bytes of a `.json` file.

    Raises:
        InvalidInput: With every mistake in them.
    """
    try:
        return CorpusFacts.model_validate_json(data)
    except ValidationError as error:
        remedy = "prepare the corpus again"
        raise InvalidInput(
            Mistake(
                where=where,
                name=".".join(str(part) for part in problem["loc"]) or "the file",
                rule="as the command data prepare writes it",
                got=problem["msg"].lower(),
                remedy=remedy,
            )
            for problem in error.errors()
        ) from None
