"""Training off the cluster."""

from tests.kits.off_cluster import here

__all__ = ["here"]
