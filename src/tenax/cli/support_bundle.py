"""A support bundle: what there is to know about one trial, in one archive.

Rule: what the caller may not see is not in it; a note says what is missing, and why.
"""

from __future__ import annotations

import datetime
import io
import json
import tarfile
from pathlib import Path
from typing import Callable, Dict

from tenax.client.cluster import master_logs
from tenax.client.experiments import get_experiment
from tenax.client.session import Session
from tenax.client.trials import get_trial
from tenax.errors import TenaxError
from tenax.jsonvalue import Json


def write(session: Session, number: int, directory: Path) -> Path:
    """Write the archive of trial ``number`` into a directory; where it is. Raises NotFound."""
    trial = get_trial(session, number)
    now = datetime.datetime.now().strftime("%Y%m%dT%H%M%S")
    name = f"tenax-bundle-trial-{number}-{now}"
    target = directory / f"{name}.tar.gz"
    parts: Dict[str, Callable[[], str]] = {
        "trial.json": lambda: _document(trial.raw),
        "experiment.json": lambda: _document(get_experiment(session, trial.experiment_id).raw),
        "workloads.json": lambda: _document(list(trial.workloads())),
        "trial_logs.txt": lambda: "".join(f"{line.message}\n" for line in trial.logs()),
        "master_logs.txt": lambda: "".join(
            f"{line.time.isoformat() if line.time else ''} {line.level} {line.message}\n"
            for line in master_logs(session)
        ),
    }
    missing = []
    with tarfile.open(target, "w:gz") as archive:
        for part, make in parts.items():
            try:
                _add(archive, f"{name}/{part}", make())
            except TenaxError as error:
                missing.append(f"{part}: {error}\n")
        if missing:
            _add(archive, f"{name}/missing.txt", "".join(missing))
    return target


def _add(archive: tarfile.TarFile, path: str, text: str) -> None:
    data = text.encode("utf-8", "replace")
    entry = tarfile.TarInfo(path)
    entry.size = len(data)
    entry.mtime = int(datetime.datetime.now().timestamp())
    archive.addfile(entry, io.BytesIO(data))


def _document(value: Json) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
