"""Rows of allocations, their containers, and where their members meet."""
