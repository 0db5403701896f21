"""The shared case files, if this checkout has them beside it: whole documents, or their cases as parameters.

A clone without them is tested by the project's own golden values; with them, every case is collected. What no test
runs yet waits in `WAITING` for the feature that it is of; `tests/test_case_files.py` holds that nothing else is left.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

import pytest

Test = TypeVar("Test", bound=Callable[..., object])

#: Parts of a file that say in words what its cases are about.
IN_WORDS = frozenset({"_meta", "bases", "note", "search_runs_note", "semantics"})
#: By file, or by file and part: the feature that is not there yet.
WAITING: Mapping[str, str] = {
    "config_policies": "policies of configurations, of a workspace or the cluster",
    "master_config/deprecations": "the master configuration of Determined, read as it is",
    "master_config/max_slots_per_pod": "Kubernetes",
    "master_config/preemption_status": "the master configuration of Determined, read as it is",
    "master_config/resolve": "the master configuration of Determined, read as it is",
    "master_config/resolve_errors": "the master configuration of Determined, read as it is",
    "master_config/scheduler_type": "the master configuration of Determined, read as it is",
    "master_config/ui_logo_variation": "the page",
    "master_config/unmarshal": "the master configuration of Determined, read as it is",
    "misc/metric_identifier": "a request that names a metric in one word",
    "provisioner": "machines that are started and stopped",
    "scaledecider/instance_states": "machines that are started and stopped",
    "task_services/idle": "notebooks that end when nobody uses them",
    "task_services/proxy_auth": "the proxy",
}

#: Where they are, if they are.
FOLDER = Path(__file__).resolve().parents[3] / "shared" / "cases"


def answers(place: str, *told: str) -> Callable[[Test], Test]:
    """The test shows what cases say in words alone: of the part ``place`` (``file/part``) those that are ``told``.

    `tests/test_case_files.py` holds that every case of such a part is named by some test, as it stands there.
    """
    _, _, part = place.partition("/")
    document = load(place.partition("/")[0])
    if document is not None:
        unknown = sorted(set(told) - {label(case) for case in cast("list[dict[str, object]]", document[part])})
        assert not unknown, f"{place} has no case {unknown[0]!r}"

    def same(test: Test) -> Test:
        return test

    return same


def label(case: Mapping[str, object]) -> str:
    """What a case is called, or says."""
    return str(case.get("id") or case.get("case") or case.get("rule"))


def files() -> list[Path]:
    """All of them; none where they are not there."""
    return sorted(FOLDER.glob("*.json"))


def load(name: str) -> dict[str, object] | None:
    """The document of ``name`` (without ``.json``), or None where the case files are not there."""
    path = FOLDER / f"{name}.json"
    if not path.is_file():
        return None
    document = json.loads(path.read_text())
    assert isinstance(document, dict)
    return document


def collect(file: str, part: str) -> list[Any]:
    """The cases of one part of a file as parameters; none where the files are not there."""
    document = load(file)
    if document is None:
        return []
    part_cases = document[part]
    assert isinstance(part_cases, list)
    return [pytest.param(case, id=str(case["id"])) for case in part_cases]
