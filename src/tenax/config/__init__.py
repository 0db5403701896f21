"""Experiment configuration: schema, defaults, merge, dialects, and errors that say where and what."""
