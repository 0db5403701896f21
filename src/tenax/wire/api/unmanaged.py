"""What is trained elsewhere: experiments and trials that a script makes and speaks for; where a trial came from."""

from __future__ import annotations

from tenax.wire.api.experiments import Experiment, State
from tenax.wire.api.message import Document, Message
from tenax.wire.api.models import TrialSourceInfo
from tenax.wire.api.trials import Trial


class PutExperimentResponse(Message):
    """The experiment of that name, made now or before."""

    experiment: Experiment
    config: Document


class CreateTrialRequest(Message):
    """A trial of an unmanaged experiment."""

    experiment_id: int = 0
    hparams: Document = {}
    unmanaged: bool = False


class CreateTrialResponse(Message):
    """The trial."""

    trial: Trial


class PutTrialRequest(Message):
    """A trial under a name of its maker's."""

    create_trial_request: CreateTrialRequest = CreateTrialRequest()
    external_trial_id: str = ""


class PatchTrialRequest(Message):
    """What became of a trial; without a state a sign of life."""

    trial_id: int = 0
    state: State = State.UNSPECIFIED


class StartTrialRequest(Message):
    """A script begins; with ``resume`` where the trial was left."""

    trial_id: int = 0
    resume: bool = False


class StartTrialResponse(Message):
    """The number of the run, and where it goes on from."""

    trial_run_id: int
    latest_checkpoint: str | None = None
    steps_completed: int = 0


class ReportTrialSourceInfoRequest(Message):
    """What is told of it."""

    trial_source_info: TrialSourceInfo = TrialSourceInfo()


class ReportTrialSourceInfoResponse(Message):
    """What was stored."""

    trial_id: int
    checkpoint_uuid: str
