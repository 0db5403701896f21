"""Rows of users, groups, sessions, tokens and settings."""
