"""The master's end of agents: connections, desired state, specifications of containers."""
