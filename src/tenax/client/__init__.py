"""Speaks wire over HTTP; the Python SDK."""
