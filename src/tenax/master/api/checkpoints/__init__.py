"""Checkpoints: reported, listed, collected, deleted, downloaded."""
