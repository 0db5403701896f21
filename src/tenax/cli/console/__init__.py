"""How all commands look and behave: options, tables, completion, exit codes."""
