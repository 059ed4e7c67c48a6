"""The fork server of a node: what starts the processes of an epoch, and sees to it that nothing of them is left.

`trainfabric_training.launch` forks the ranks of our engine with it, `trainfabric_node.command` somebody else's command.
"""

from trainfabric_node.launch.server import ForkServer
from trainfabric_node.launch.wire import EpochStart, Request, line_of, read_request

__all__ = ["EpochStart", "ForkServer", "Request", "line_of", "read_request"]
