"""What stands below a user's own configuration: the template, the pool's, the workspace's and the master's defaults."""

from __future__ import annotations

from tenax.config import Layers, PoolLayer
from tenax.config.master import MasterSettings, PoolSettings
from tenax.jsonvalue import JsonObject


def layers(
    settings: MasterSettings,
    pool: PoolSettings,
    template: JsonObject | None = None,
    *,
    workspace_storage: JsonObject | None = None,
) -> Layers:
    """What stands below a user's own configuration in ``pool``."""
    storage = settings.checkpoint_storage
    return Layers(
        template=template,
        workspace_checkpoint_storage=workspace_storage,
        task_container_defaults=settings.task_container_defaults,
        pool=PoolLayer(
            name=pool.name,
            default_priority=pool.scheduler.default_priority,
            task_container_defaults=pool.task_container_defaults,
        ),
        master_checkpoint_storage=None if storage is None else storage,
    )
