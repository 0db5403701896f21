"""What users of Determined import from ``determined.common``."""
