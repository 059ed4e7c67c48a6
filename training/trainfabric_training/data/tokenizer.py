"""Byte-level byte-pair encoding: any text can be encoded, and decodes to the same bytes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from trainfabric_plan.errors import mistake

END_OF_DOCUMENT = "<|endoftext|>"
END_OF_DOCUMENT_TOKEN = 0
SMALLEST_VOCABULARY = 257
"""One entry per byte, and the end of a document."""


def train_tokenizer(texts: Iterable[str], vocabulary: int, length: int | None = None) -> Tokenizer:
    """A tokenizer of at most `vocabulary` entries (fewer if the texts have fewer pairs); same texts, same tokenizer.

    Raises:
        InvalidInput: If the vocabulary does not hold every byte.
    """
    if not SMALLEST_VOCABULARY <= vocabulary < 2**31:
        rule = f"at least {SMALLEST_VOCABULARY} (256 bytes and the end of a document) and below 2^31"
        raise mistake("tokenizer", "vocabulary", rule, vocabulary, "use the vocabulary of the recipe")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[END_OF_DOCUMENT],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer, length=length)
    return tokenizer


def encode_documents(tokenizer: Tokenizer, texts: Sequence[str]) -> list[list[int]]:
    """The tokens of each text, with the end of the document behind them."""
    encoded = tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
    return [[*encoding.ids, END_OF_DOCUMENT_TOKEN] for encoding in encoded]
