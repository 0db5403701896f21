"""Runs by hand: scripts that no cluster started, their files on this machine, and how they get to a cluster."""
