"""Rented machines: what may be rented, and the providers that rent them out."""
