"""The loops: each loads, decides, applies."""
