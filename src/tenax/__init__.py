"""Tenax: a deep-learning training platform. Importing it loads nothing: tasks pay for each import."""

__version__ = "0.1.0"
