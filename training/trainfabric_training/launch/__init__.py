"""The ranks of a node: a process that has imported the engine once forks them for every epoch.

    launcher     imports the engine, then serves a unix socket (`server`, `wire`)
    └─ agent     one fork per epoch: torch elastic with one fixed node count and no restarts (`epoch`)
       └─ ranks  one fork per rank: the trainer

`python -m trainfabric_training.launch launcher` is single-threaded, because it forks, and never touches CUDA. Every
process dies with its parent. `… rendezvous` is the store in which the ranks of all nodes meet (`rendezvous`).
"""
