"""``context.experimental``: what a task says of the checkpoints of others that it uses. Standard library only,
Python 3.9."""

from __future__ import annotations

from tenax.core.spool import say
from tenax.errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional, Union

    from tenax.client import Checkpoint, ModelVersion
    from tenax.client.task import TaskClient
    from tenax.core.info import TrialInfo
    from tenax.jsonvalue import JsonObject


class ExperimentalContext:
    """``client`` None: off the cluster, where it is only said."""

    def __init__(self, client: Optional[TaskClient], trial: Optional[TrialInfo]) -> None:
        self._client = client
        self._trial = trial

    def report_task_using_checkpoint(self, checkpoint: Union[Checkpoint, str]) -> None:
        """What this task reports is found with the checkpoint (or its UUID) from now on. Raises InvalidInput,
        MasterAway."""
        uuid = checkpoint if isinstance(checkpoint, str) else getattr(checkpoint, "uuid", None)
        if not isinstance(uuid, str):
            raise InvalidInput(f"a checkpoint or its UUID is needed, not {checkpoint!r}")
        self._report(uuid, {})

    def report_task_using_model_version(self, model_version: ModelVersion) -> None:
        """The same for a version of a registered model, and for its checkpoint. Raises InvalidInput, MasterAway."""
        uuid = getattr(getattr(model_version, "checkpoint", None), "uuid", None)
        if not isinstance(uuid, str):
            raise InvalidInput(f"a version of a registered model is needed, not {model_version!r}")
        number = model_version.version
        self._report(uuid, {"modelId": model_version.model.id, "modelVersion": number})

    def _report(self, uuid: str, version: JsonObject) -> None:
        if self._client is None or self._trial is None:
            say(f"this task uses checkpoint {uuid}")
            return
        kind = "TRIAL_SOURCE_INFO_TYPE_INFERENCE"
        source = {"trialId": self._trial.trial_id, "checkpointUuid": uuid, "trialSourceInfoType": kind, **version}
        self._client.call("POST", "/api/v1/trial-source-info", body={"trialSourceInfo": source})
