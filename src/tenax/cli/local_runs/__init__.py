"""Runs by hand: tracked while they run, listed, compared, resumed, and sent to a cluster later."""
