"""Rows of agents and their slots."""
