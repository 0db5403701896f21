"""What the clouds say of the machine that an agent runs on: one module for each, behind the port here.

`METADATA` is the registry: the name in the agent's settings, and who asks that cloud's metadata service.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import aiohttp

from tenax.agent.clouds.aws import AwsMetadata
from tenax.agent.clouds.gcp import GcpMetadata
from tenax.agent.clouds.port import Metadata

METADATA: Mapping[str, Callable[[aiohttp.ClientSession, str], Metadata]] = {"aws": AwsMetadata, "gcp": GcpMetadata}
