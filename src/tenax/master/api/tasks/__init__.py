"""Tasks, commands, generic tasks and templates."""
