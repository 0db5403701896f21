"""Rows of tasks, templates, and the archives of code that they run."""
