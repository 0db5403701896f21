"""Output of tasks: chunks, policies, retention, and how far spools were taken in."""
