"""A local node: a directory that stands for `/`, and stand-ins for systemd, cloud-init and the hardware's programs.

The node runs its own user data, boot script and unit files. The stand-ins do what the real programs do as far as a node
asks them, below the directory, and refuse what they do not know.
"""
