"""Rows of the cluster itself, and its state as gauges."""
