"""Corpora: text to Megatron `.bin/.idx` files, and samples out of them in an order that follows from a seed alone."""

from trainfabric_training.data.corpus import Corpus, open_corpus
from trainfabric_training.data.facts import CorpusFacts
from trainfabric_training.data.indexed import IndexedTokens, IndexedWriter
from trainfabric_training.data.permutation import sample_index
from trainfabric_training.data.prepare import prepare
from trainfabric_training.data.sources import find_sources, standard_library_sources

__all__ = [
    "Corpus",
    "CorpusFacts",
    "IndexedTokens",
    "IndexedWriter",
    "find_sources",
    "open_corpus",
    "prepare",
    "sample_index",
    "standard_library_sources",
]
