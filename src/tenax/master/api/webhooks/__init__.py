"""Webhooks: who is told of what over HTTP."""
