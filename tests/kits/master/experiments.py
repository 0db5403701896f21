"""Experiments over the API: a configuration, files of code as clients send them, and the request that makes one."""

from __future__ import annotations

import base64

from tests.kits.api import Api

CONFIG = """
name: digits
description: two layers
labels: [vision, small]
entrypoint: python3 train.py
hyperparameters:
  lr: {type: log, base: 10, minval: -4, maxval: -1}
searcher: {name: random, metric: accuracy, smaller_is_better: false, max_trials: 8}
resources: {slots_per_trial: 1}
"""


def file(path: str, content: str = "print('hello')\n", **more: object) -> dict[str, object]:
    """One file as clients send it."""
    encoded = base64.b64encode(content.encode()).decode()
    return {
        "path": path,
        "type": 48,
        "content": encoded,
        "mtime": "1795000000",
        "mode": 33188,
        "uid": 0,
        "gid": 0,
        **more,
    }


async def create(api: Api, config: str = CONFIG, **more: object) -> dict[str, object]:
    """The experiment that was made."""
    reply = await api.user.post("/api/v1/experiments", {"config": config, "activate": True, **more})
    assert reply.status_code == 200, reply.text
    return reply.json()
