"""Webhook delivery: the payload of a message, and sending it."""
