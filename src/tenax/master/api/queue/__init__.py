"""The queue, its resource pools, and what slots were used for."""
