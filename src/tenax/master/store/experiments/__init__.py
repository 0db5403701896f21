"""Rows of experiments and their searches."""
