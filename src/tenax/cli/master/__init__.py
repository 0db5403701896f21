"""``tenax master``."""
