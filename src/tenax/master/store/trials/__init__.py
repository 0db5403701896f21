"""Rows of trials."""
