"""Checkpoints in buckets: Determined's own library and Tenax read what the other stored; its script runs with one."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tenax.storage import registry
from tenax.storage.port import Storage
from tests.compat.client import PYTHON, RealClient
from tests.compat.harness import WHEEL, finished, submit
from tests.kits.machine import Machine, wait_for
from tests.kits.object_places import EMULATOR, PLACES, PREFIX, new_place
from tests.kits.storage_kit import SIZES, STORAGE_ID, TWO, put, source

__all__ = ["source"]

#: Downloads what is in the storage of a section, and stores a directory.
BOTH_WAYS = """
import json, sys
from determined.common import storage
section, theirs, target, ours, source = json.loads(sys.stdin.read())
manager = storage.build(section, container_path=None)
manager.download(theirs, target)
manager.upload(source, ours)
"""
#: Goes on from a checkpoint of its own, in the dialect of Determined.
SCRIPT = """
    import determined as det

    with det.core.init() as context:
        assert "site-packages/determined" in det.__file__, det.__file__
        for step in (1, 2, 3):
            with context.checkpoint.store_path({"steps_completed": step}) as (path, uuid):
                (path / "deep").mkdir()
                (path / "deep" / "model.bin").write_bytes(bytes([step]) * 1000)
        with context.checkpoint.restore_path(uuid) as path:
            assert (path / "deep" / "model.bin").read_bytes() == bytes([3]) * 1000
        context.train.report_validation_metrics(3, {"score": 1.0})
"""


@pytest.mark.parametrize("kind", PLACES)
def test_each_reads_what_the_other_stored(
    kind: str, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the same sections, under the same names."""
    with new_place(kind) as place:
        if not place.setting:
            monkeypatch.setenv(EMULATOR, place.server)
        section = place.at()
        if kind == "azure":
            # It takes a container alone.
            section["container"] = section["container"].partition("/")[0]
        storage = registry.from_config(section)
        put(storage, source)
        _by_determined(section, source, tmp_path / "theirs")
        assert (tmp_path / "theirs/model.bin").read_bytes() == b"weights" * 1000
        assert (tmp_path / "theirs/layers/deep/one.bin").read_bytes() == b"1"
        _same(storage, tmp_path / "ours")


def _by_determined(section: Mapping[str, Any], source: Path, target: Path) -> None:
    target.mkdir()
    given = json.dumps([section, STORAGE_ID, str(target), TWO, str(source)])
    environment = {**os.environ, "GOOGLE_CLOUD_PROJECT": "none"}
    subprocess.run([PYTHON, "-c", BOTH_WAYS], input=given, text=True, check=True, env=environment)


def _same(storage: Storage, target: Path) -> None:
    files = {path: size for path, size in storage.list_files(TWO).items() if not path.endswith("/")}
    assert files == {path: size for path, size in SIZES.items() if not path.endswith("/")}
    storage.download(TWO, str(target))
    assert (target / "layers/deep/one.bin").read_bytes() == b"1"


def test_a_script_with_a_bucket(
    cluster: Machine, admin: RealClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library stores, the policy deletes, its client downloads, and what is deleted is gone."""
    det = admin.det
    with new_place("s3") as place:
        storage = {**place.at(), "save_trial_latest": 1, "save_trial_best": 0}
        variables = {"checkpoint_storage": storage, "environment": {"environment_variables": WHEEL}}
        experiment = submit(cluster, tmp_path / "code", {"train.py": SCRIPT}, **variables)  # type: ignore[arg-type]
        finished(cluster, experiment)
        checkpoints = det("e", "list-checkpoints", experiment.id, "--csv").out
        assert checkpoints.count("COMPLETED") >= 1

        def left() -> set[str]:
            names = [name[len(PREFIX) + 1 :] for name in place.objects.names() if "/tensorboard/" not in name]
            return {name.split("/")[0] for name in names}

        (uuid,) = wait_for(lambda: left() if len(left()) == 1 else None, "the end of two checkpoints")
        for name, value in place.variables.items():
            monkeypatch.setenv(name, value)
        det("checkpoint", "download", uuid, "-o", tmp_path / "back", "-q")
        assert (tmp_path / "back/deep/model.bin").read_bytes() == bytes([3]) * 1000
        det("e", "delete", experiment.id, "--yes")
        wait_for(lambda: not place.objects.names() or None, "the end of everything")
