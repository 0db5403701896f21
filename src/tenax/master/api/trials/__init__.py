"""Trials: looked at, killed, and what their scripts say."""
