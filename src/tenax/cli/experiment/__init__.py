"""``tenax experiment``."""
