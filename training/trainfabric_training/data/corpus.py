"""A corpus as numbered samples."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from trainfabric_plan.errors import mistake
from trainfabric_training.data.cache import local_copy
from trainfabric_training.data.facts import CorpusFacts
from trainfabric_training.data.indexed import IndexedTokens


class Corpus:
    """Tokens of all documents as one stream, cut into samples of equal length that overlap by one token.

    Attributes:
        facts: What the corpus says about itself.
        sequence_length: Tokens per sample, without the one that the last position predicts.
    """

    def __init__(self, prefix: Path, facts: CorpusFacts, sequence_length: int, where: str) -> None:
        self.facts = facts
        self.sequence_length = sequence_length
        self._where = where
        self._tokens = IndexedTokens(prefix).tokens
        if len(self._tokens) != facts.tokens:
            rule = f"{facts.tokens}, as its facts say"
            raise mistake(where, "number of tokens", rule, len(self._tokens), "prepare the corpus again")
        if len(self) < 1:
            rule = f"at most {facts.tokens - 1} for a corpus of {facts.tokens} tokens"
            remedy = "use more text or a recipe with shorter sequences"
            raise mistake(where, "sequence length", rule, sequence_length, remedy)

    def __len__(self) -> int:
        """Number of samples: every token but the first is predicted once; what does not fill a sample is left out."""
        return (len(self._tokens) - 1) // self.sequence_length

    def sample(self, number: int) -> npt.NDArray[np.int64]:
        """A sample [sequence_length + 1]: inputs without the last token, targets without the first.

        Raises:
            InvalidInput: If the file holds a token that is not in the corpus's vocabulary.
        """
        if not 0 <= number < len(self):
            raise IndexError(f"sample {number} of {len(self)}")
        start = number * self.sequence_length
        tokens = self._tokens[start : start + self.sequence_length + 1].astype(np.int64)
        if int(tokens.max()) >= self.facts.vocabulary or int(tokens.min()) < 0:
            rule = f"from 0 to {self.facts.vocabulary - 1}"
            remedy = "the file is damaged: prepare the corpus again"
            raise mistake(self._where, f"token of sample {number}", rule, int(tokens.max()), remedy)
        return tokens


def open_corpus(uri_prefix: str, sequence_length: int, cache_directory: Path, vocabulary: int | None = None) -> Corpus:
    """The corpus at `s3://bucket/prefix` or at a path without suffix.

    A corpus in a bucket is downloaded once per content and node, checked against its hashes, whoever asks first while
    the other ranks wait; a local one, such as on Lustre, is read where it lies.

    Args:
        uri_prefix: Where `prepare` wrote it.
        sequence_length: Tokens per sample.
        cache_directory: Where this node keeps what it downloads.
        vocabulary: Entries of the model's embedding, if known: a corpus with more is refused.

    Raises:
        NotFound: If there is none.
        InvalidInput: If it is damaged, shorter than a sample, or has tokens that the model does not know.
        Unreachable: If the bucket cannot be read.
    """
    if sequence_length < 1:
        raise mistake(uri_prefix, "sequence length", "at least 1", sequence_length)
    prefix, facts = local_copy(uri_prefix, cache_directory)
    if vocabulary is not None and facts.vocabulary > vocabulary:
        rule = f"at most the {vocabulary} entries of the model"
        remedy = "prepare the corpus with the recipe's vocabulary"
        raise mistake(uri_prefix, "vocabulary of the corpus", rule, facts.vocabulary, remedy)
    return Corpus(prefix, facts, sequence_length, uri_prefix)
