"""Stand-ins for the programs of a node: those in Python here, those in shell in the folder `shell`."""
