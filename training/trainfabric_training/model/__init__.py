"""Models as sequences of layers, ready to be cut into pipeline stages."""

from trainfabric_training.model.gpt import Layer, gpt_layers, gpt_loss

__all__ = ["Layer", "gpt_layers", "gpt_loss"]
