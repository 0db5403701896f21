"""Metrics: taken in, read back, drawn."""
