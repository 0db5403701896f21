"""Workspaces and the projects in them."""
