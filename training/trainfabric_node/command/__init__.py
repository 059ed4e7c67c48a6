"""Somebody else's training code on a node: one command per epoch, in the place of the launcher of our engine.

serve       the unit: a fork server like the launcher's
└─ epoch       one command from start to end: asked to leave, watched, judged by its exit status
   ├─ start       what the supervisor says about it: variables, code, mounts
   ├─ container   the command line of docker
   └─ progress    what the command tells of its steps
"""
