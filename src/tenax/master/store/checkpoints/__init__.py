"""Rows of checkpoints, and of their garbage collection."""
