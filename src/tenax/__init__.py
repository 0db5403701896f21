"""Tenax: a deep-learning training platform. Importing it loads nothing: tasks pay for each import."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tenax import core as core
    from tenax.core.info import get_cluster_info as get_cluster_info

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """``tenax.core`` and ``tenax.get_cluster_info``, loaded when they are used."""
    if name == "core":
        from importlib import import_module

        return import_module("tenax.core")
    if name == "get_cluster_info":
        from tenax.core.info import get_cluster_info

        return get_cluster_info
    raise AttributeError(f"module 'tenax' has no attribute {name!r}")
