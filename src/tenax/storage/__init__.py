"""Checkpoint storage: where the files of a checkpoint live."""
