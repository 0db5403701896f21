"""Checkpoint files: as archives, and removed, here or by a task."""
