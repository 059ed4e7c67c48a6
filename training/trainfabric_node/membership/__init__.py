"""Which nodes train, and when: the controller of a run, and what it says to the supervisors of its nodes."""
