"""Runs a container: as a plain process, by the Docker Engine API, or pretended for tests."""
