"""A trial on two machines, as each of its members sees it."""

from __future__ import annotations

from tenax.core.info import ClusterInfo
from tenax.jsonvalue import JsonObject

CLUSTER: JsonObject = {
    "master_url": "http://master:8080",
    "cluster_id": "c",
    "agent_id": "a",
    "slot_ids": [0, 1],
    "task_id": "t",
    "allocation_id": "t.1",
    "session_token": "s",
    "task_type": "TRIAL",
}
TRIAL: JsonObject = {
    "trial_id": 1,
    "experiment_id": 1,
    "trial_seed": 1,
    "hparams": {},
    "config": {},
    "steps_completed": 0,
    "trial_run_id": 1,
}
PORTS = {"DTRAIN_SSH_PORT": "12382", "C10D_PORT": "29432"}


def uneven(member: int) -> ClusterInfo:
    """Two machines, three slots and two."""
    met: JsonObject = {
        "container_addrs": ["10.0.0.1", "10.0.0.2"],
        "container_rank": member,
        "container_slot_counts": [3, 2],
    }
    return ClusterInfo(CLUSTER, TRIAL, met)
