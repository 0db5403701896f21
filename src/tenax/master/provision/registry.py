"""Which providers there are: the one place where a new one is added.

A provider is a module of `tenax.master.provision` with a class that keeps to `Provider` of its port, its settings
in `tenax.config.provider`, and one line in the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tenax.master.provision.aws import Aws
from tenax.master.provision.gcp import Gcp
from tenax.master.provision.port import Provider, ProviderPlace

#: By the type that settings give them; made for a place and the cluster whose mark machines carry.
PROVIDERS: Mapping[str, Callable[[ProviderPlace, str], Provider]] = {"aws": Aws, "gcp": Gcp}


def open_provider(place: ProviderPlace, cluster_id: str) -> Provider:
    """The provider of a place; nothing is asked yet."""
    return PROVIDERS[place.provider](place, cluster_id)
