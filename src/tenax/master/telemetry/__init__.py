"""What a report, a series, a line of output is, and what becomes of it. Pure."""
