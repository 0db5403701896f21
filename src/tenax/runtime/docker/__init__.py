"""Containers by the Docker Engine API: what an engine is asked for, what it answers, and what its containers print."""
