"""Webhooks: which addresses are notified of what."""
