"""Rows of quotas, and of what was used."""
