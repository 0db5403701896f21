"""Quotas: who may have how much."""
