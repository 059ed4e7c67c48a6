"""Tensor parallelism of our own: layers that take the mesh as an argument, parameters that know where they lie."""

from trainfabric_training.parallel.cross_entropy import VocabularyParallelCrossEntropy
from trainfabric_training.parallel.layers import ColumnLinear, Norm, PositionEmbedding, RowLinear, VocabularyEmbedding
from trainfabric_training.parallel.mesh import Mesh, coordinates
from trainfabric_training.parallel.parameters import Initial, ParameterInfo, info_of
from trainfabric_training.parallel.ranks import Agreed, Ranks

__all__ = [
    "Agreed",
    "ColumnLinear",
    "Initial",
    "Mesh",
    "Norm",
    "ParameterInfo",
    "PositionEmbedding",
    "Ranks",
    "RowLinear",
    "VocabularyEmbedding",
    "VocabularyParallelCrossEntropy",
    "coordinates",
    "info_of",
]
