"""Starts and stops machines."""
