"""What is asked, what is known and what follows from it; needs nothing but pydantic.

Rooms: `environment` (the file a platform team writes), `recipes` (what to train), `catalog` (facts about instance
types and prices), `planning` (layout, memory, cost), `contract` (names shared by the stacks and the nodes).
"""
