"""Runs: found by any column, changed by the hundred."""
