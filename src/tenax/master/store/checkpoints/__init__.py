"""Rows of checkpoints, and of their garbage collection (gc), whose unit is a removal."""
