"""Agents, their slots, and machines that are rented."""
