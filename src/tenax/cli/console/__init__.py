"""What all commands share: options, tables, completion, exit codes."""
