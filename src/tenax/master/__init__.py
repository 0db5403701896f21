"""The master: API, store, loops."""
