"""Thin re-exports under the names that users of Determined know."""
