"""Experiments: submitted, found, changed, and their searches."""
