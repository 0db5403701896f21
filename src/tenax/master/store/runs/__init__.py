"""Runs as people see them, and their metadata."""
