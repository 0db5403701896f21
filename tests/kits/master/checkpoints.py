"""Checkpoints of running attempts: reported over the API, and their files in the storage of the settings."""

from __future__ import annotations

from pathlib import Path

from tests.kits.api import Api
from tests.kits.master.attempts import Running

UUID = "0d6e4079-4c8e-4f5f-9a39-2f4e2b1c0001"


async def report(run: Running, uuid: str = UUID, steps: int = 10, **more: object) -> None:
    """A checkpoint of the running attempt, as its task reports it."""
    body = {
        "uuid": uuid,
        "taskId": "ignored",
        "allocationId": "ignored",
        "state": "STATE_COMPLETED",
        "metadata": {"steps_completed": steps, "framework": "torch"},
        "resources": {"weights/": "0", "weights/w.bin": "4"},
        "training": {},
        **more,
    }
    reply = await run.task.post("/api/v1/checkpoints", body)
    assert reply.status_code == 200, reply.text


def stored_files(api: Api, uuid: str = UUID) -> Path:
    """Files of a checkpoint where the settings of the test put them."""
    place = api.master.settings.checkpoint_storage
    assert place is not None
    folder = Path(str(place["host_path"])) / uuid
    (folder / "weights").mkdir(parents=True)
    (folder / "weights" / "w.bin").write_bytes(b"data")
    (folder / "metadata.json").write_text("{}")
    return folder
