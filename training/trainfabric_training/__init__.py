"""The trainer: a recipe, laid out by a plan, trained with DeepSpeed over all ranks of a run.

Rooms: `parallel` (the mesh and the layers cut over it), `model`, `data`, `engine` (DeepSpeed, the reference, saving and
restoring), `telemetry`. `trainer` says what happens in which order.
"""
