"""A directory that tasks have on PYTHONPATH: what lies here can be imported in a task, beside its own packages."""
