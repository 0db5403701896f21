"""Experiments: submitted, searched, changed, and their searches."""
