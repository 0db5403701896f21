"""Output of tasks: taken in, read, and how long it is kept."""
