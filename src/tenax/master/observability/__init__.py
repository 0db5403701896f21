"""The master's own log and counters."""
