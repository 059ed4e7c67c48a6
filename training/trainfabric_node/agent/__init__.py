"""The agent of a node: takes part in the environment's jobs, and tells the others how it goes."""

from trainfabric_node.agent.agent import run_agent, serve
from trainfabric_node.agent.host import Host, Patience
from trainfabric_node.agent.launch import Launch, Node, RunFiles, torchrun_command

__all__ = ["Host", "Launch", "Node", "Patience", "RunFiles", "run_agent", "serve", "torchrun_command"]
