"""Training that runs elsewhere and reports here, by Determined's own ``core_v2``, unchanged."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import cast

from tenax.jsonvalue import Json, JsonObject
from tests.compat.client import PYTHON, RealClient, Sdk
from tests.kits.detached_script import detached_script

_LOOK = """
from determined.common.api import bindings
trial = client.get_trial(number)
session = trial._session
raw = bindings.get_GetTrial(session, trialId=number).trial.to_json()
result = {
    "trial": raw,
    "experiment": bindings.get_GetExperiment(session, experimentId=trial.experiment_id).experiment.to_json(),
    "losses": [one.steps_completed for one in trial.iter_metrics("training")],
    "checkpoints": [one.uuid for one in trial.list_checkpoints()],
    "logs": "".join(trial.logs()),
}
"""


def _run(real: RealClient, directory: Path, name: str, steps: int, *, fail: bool = False) -> tuple[int, str, int]:
    """Exit code, output and number of the trial."""
    script = directory / "elsewhere.py"
    script.write_text(detached_script("determined"))
    words = [name, str(directory / "storage"), str(steps), "fail" if fail else ""]
    plain = {key: value for key, value in os.environ.items() if not key.startswith(("DET_", "TENAX_"))}
    done = subprocess.run(
        [str(PYTHON), str(script), *words],
        env={**plain, **real.environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert "ids " in done.stdout, done.stdout + done.stderr
    return done.returncode, done.stdout, int(done.stdout.split("ids ")[1].split()[1])


def _look(sdk: Sdk, trial_id: int) -> tuple[JsonObject, JsonObject, dict[str, Json]]:
    found = cast("dict[str, Json]", sdk(_LOOK, number=trial_id))
    return cast(JsonObject, found["trial"]), cast(JsonObject, found["experiment"]), found


def test_a_named_trial_goes_on(real: RealClient, sdk: Sdk, tmp_path: Path) -> None:
    """The same names mean the same experiment and trial: the second run goes on from the first one's checkpoint, as
    run 2, and all of it is one curve; what it printed is in the trial's log."""
    code, first, trial_id = _run(real, tmp_path, f"named-{tmp_path.name}", 3)
    assert code == 0, first
    assert "run 1 from 0" in first
    code, second, again = _run(real, tmp_path, f"named-{tmp_path.name}", 2)
    assert (code, again) == (0, trial_id)
    assert "run 2 from 3" in second
    trial, experiment, found = _look(sdk, trial_id)
    assert trial["state"] == "STATE_COMPLETED"
    assert trial["hparams"] == {"lr": 0.5}
    assert (experiment["state"], experiment["unmanaged"]) == ("STATE_COMPLETED", True)
    assert experiment["labels"] == ["far"]
    assert found["losses"] == [1, 2, 3, 4, 5]
    assert len(cast("list[Json]", found["checkpoints"])) == 2
    assert "run 2 from 3" in str(found["logs"])


def test_a_script_that_fails(real: RealClient, sdk: Sdk, tmp_path: Path) -> None:
    """Trial and experiment end as ERROR, and nothing of it stands in the queue."""
    code, _, trial_id = _run(real, tmp_path, "", 1, fail=True)
    assert code == 1
    trial, experiment, _ = _look(sdk, trial_id)
    assert (trial["state"], experiment["state"]) == ("STATE_ERROR", "STATE_ERROR")
    queue = cast("dict[str, list[JsonObject]]", real.json("job", "list", "--json"))
    assert all(job["entityId"] != str(experiment["id"]) for job in queue["jobs"])


def test_it_cannot_be_steered_from_here(real: RealClient, tmp_path: Path) -> None:
    """Pausing it is refused in words; deleting it works."""
    code, out, _ = _run(real, tmp_path, "", 1)
    assert code == 0, out
    number = out.split("ids ")[1].split()[0]
    for verb in ("pause", "activate"):
        done = real.det("e", verb, number, check=False)
        assert done.code != 0
        assert "outside of this cluster" in done.out + done.err
    real.det("e", "delete", number, "--yes")
