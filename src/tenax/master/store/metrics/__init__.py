"""Reports of metrics: written, sealed, read back."""
