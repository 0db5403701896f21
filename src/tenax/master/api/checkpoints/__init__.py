"""Checkpoints: reported, listed, garbage-collected, deleted, downloaded."""
