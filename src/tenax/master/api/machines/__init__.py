"""Rented machines: what there are, and what would be done now."""
