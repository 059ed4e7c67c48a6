"""Orchestrators: what starts the ranks of a training run."""
