"""Speaks wire over HTTP; the Python SDK. ``task``, ``http1`` and ``quickjson`` are for tasks: standard library only."""
