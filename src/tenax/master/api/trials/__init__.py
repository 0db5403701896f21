"""Trials: shown, killed, and what their scripts report."""
