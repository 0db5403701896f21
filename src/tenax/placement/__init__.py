"""Who places allocations: our own agents, or another cluster's scheduler."""
