"""Webhook messages: how they look, and how they are sent."""
