"""The supervisor of a node: beats to the controller of a run, and has ranks started, watched and ended as it says.

agent      waits for the environment's job
└─ run     the main loop of one run: all decisions
   ├─ epoch      the ranks of one membership: `ranks` (who moves), `verdict` (how it ended), `procfs` (stacks)
   ├─ launcher   the socket of the process that forks and kills the ranks
   ├─ beats      to the controller, over TCP; `desk` is what they say
   ├─ lease      ends the ranks when the controller is silent
   ├─ notices    of EC2
   ├─ lookout    at the bucket: where the controller is, whether the run is over
   └─ publisher  uploads of what the ranks write
"""

from trainfabric_node.agent.agent import run_agent, serve
from trainfabric_node.agent.host import Host, Node

__all__ = ["Host", "Node", "run_agent", "serve"]
