"""Agents and slots: how agents join and report, and what people see and change of them."""
