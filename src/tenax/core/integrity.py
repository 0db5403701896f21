"""Whether a checkpoint is what was stored, and what to do where it is not. Standard library only, Python 3.9."""

from __future__ import annotations

from tenax.errors import TenaxError
from tenax.storage.manifest import StoredFiles, problems_of, read_manifest
from tenax.storage.port import CheckpointDamaged
from tenax.wire.spool_names import MANIFEST_FILE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional

    from tenax.client.task import TaskClient
    from tenax.storage.port import Selector

#: Problems that a message names.
_MAX_NAMED = 5


def verified(
    storage_id: str, place: str, selector: Optional[Selector], client: Optional[TaskClient], trial_id: Optional[int]
) -> Optional[StoredFiles]:
    """Read a checkpoint, or what was selected of it, at ``place``; None: it has no manifest to hold it against.

    Raises CheckpointDamaged naming the files, and the checkpoint to go on from.
    """
    try:
        manifest = read_manifest(place)
        if manifest is None:
            return None
        problems, fingerprints = problems_of(place, manifest, selector)
    except (OSError, ValueError, TypeError) as error:
        problems, fingerprints, manifest = [f"{MANIFEST_FILE} or a file cannot be read ({error})"], {}, {}
    if problems:
        more = f" and {len(problems) - _MAX_NAMED} more" if len(problems) > _MAX_NAMED else ""
        raise CheckpointDamaged(
            f"checkpoint {storage_id} at {place} is not what was stored: {'; '.join(problems[:_MAX_NAMED])}{more}. "
            f"{_advice(storage_id, client, trial_id)}"
        )
    return StoredFiles(storage_id, manifest, fingerprints)


def _advice(storage_id: str, client: Optional[TaskClient], trial_id: Optional[int]) -> str:
    other = _other(storage_id, client, trial_id) if client is not None and trial_id is not None else None
    delete = f"delete this one (tenax checkpoint delete {storage_id})"
    again = "and continue the experiment (a search that stops trials early cannot be: fork it)"
    if other is not None:
        uuid, steps = other
        return f"Go on from checkpoint {uuid} of step {steps}: {delete}, {again}"
    if client is not None:
        return f"Go on from another checkpoint (tenax checkpoint list): {delete}, {again}"
    return "Go on from another checkpoint, or begin anew without latest_checkpoint"


def _other(storage_id: str, client: TaskClient, trial_id: int) -> Optional[tuple[str, int]]:
    """The checkpoint of this trial with the most steps but for this one; None: it has none, or nobody says."""
    try:
        answer = client.call("GET", f"/api/v1/trials/{trial_id}/checkpoints", timeout=10.0, retry_for_s=10.0)
    except TenaxError:
        return None
    listed = answer.get("checkpoints") if isinstance(answer, dict) else None
    best: Optional[tuple[str, int]] = None
    for each in listed if isinstance(listed, list) else ():
        if not isinstance(each, dict) or each.get("uuid") == storage_id:
            continue
        if not str(each.get("state")).endswith("COMPLETED"):
            continue
        metadata = each.get("metadata")
        steps = metadata.get("steps_completed") if isinstance(metadata, dict) else None
        if isinstance(steps, int) and (best is None or steps > best[1]):
            best = str(each.get("uuid")), steps
    return best
