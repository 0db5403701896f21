"""Rows of webhooks, and the queue of what is sent to them."""
