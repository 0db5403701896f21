"""The agent: session with the master, containers, detection, output."""
