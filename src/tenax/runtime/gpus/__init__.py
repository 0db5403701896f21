"""Kinds of GPU: how those of a machine are found, and how a task gets some of them. `registry` lists them."""
