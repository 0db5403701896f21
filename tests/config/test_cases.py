"""Every case of the shared case files on configuration: expconf_schema, task_container_defaults.

A case tells facts in its own words; `FACTS` says by which words each is told here.
"""

from __future__ import annotations

import random
import re
from typing import Any

import jsonschema_rs
import pytest

from tenax.config import container_defaults
from tenax.config.problems import Path, ProblemReport
from tenax.config.resolve import Layers, parse_experiment
from tenax.config.schema import environment, hyperparameters, logs, resources, searcher, storage
from tenax.config.schema.command import COMMAND
from tenax.config.schema.experiment import EXPERIMENT
from tenax.config.schema.legacy import PROFILING, SECURITY
from tenax.config.schema.lengths import LENGTH, POSITIVE_LENGTH
from tenax.config.shapes import Shape
from tenax.config.structs import Struct
from tenax.jsonvalue import Json, JsonObject
from tests.kits import cases
from tests.kits.departures import departure


class _Named(Shape):
    """A variant alone, with the tag that names it left in the input."""

    def __init__(self, tag: str, variant: Struct[object]) -> None:
        self._tag = tag
        self._variant = variant

    def check(self, value: Json, at: Path, report: ProblemReport) -> Json:
        assert isinstance(value, dict)
        return self._variant.check({key: item for key, item in value.items() if key != self._tag}, at, report)

    def json_schema(self) -> JsonObject:
        schema = self._variant.json_schema()
        properties = schema["properties"]
        assert isinstance(properties, dict)
        return {**schema, "properties": {**properties, self._tag: {}}}

    def fill(self, value: Json) -> Json:
        return self._variant.fill(value)

    def finish(self, value: Json, at: Path, report: ProblemReport) -> None:
        self._variant.finish(value, at, report)


class _Grid(Shape):
    """The tree of hyperparameters under a grid search."""

    def check(self, value: Json, at: Path, report: ProblemReport) -> Json:
        checked = hyperparameters.HYPERPARAMETERS.check(value, at, report)
        hyperparameters.check_grid(checked, at, report)
        return checked


SHAPES: dict[str, Shape] = {
    "experiment": EXPERIMENT,
    "bind-mount": resources.BIND_MOUNT,
    "bind-mounts": resources.BIND_MOUNTS,
    "devices": resources.DEVICES,
    "resources": resources.RESOURCES,
    "environment": environment.ENVIRONMENT,
    "environment-image": environment.IMAGES,
    "environment-variables": environment.VARIABLES,
    "checkpoint-storage": storage.CHECKPOINT_STORAGE,
    "shared-fs": _Named("type", storage.SHARED_FS),
    "directory": _Named("type", storage.DIRECTORY),
    "s3": _Named("type", storage.S3_STORAGE),
    "gcs": _Named("type", storage.GCS),
    "azure": _Named("type", storage.AZURE),
    "searcher": searcher.SEARCHER,
    **{
        f"searcher-{name.replace('_', '-')}": _Named("name", variant)
        for name, variant in searcher.SEARCHER.variants.items()
    },
    "hyperparameter": hyperparameters.HYPERPARAMETER,
    "hyperparameter-const": _Named("type", hyperparameters.CONST),
    "hyperparameter-int": _Named("type", hyperparameters.INT),
    "hyperparameter-double": _Named("type", hyperparameters.DOUBLE),
    "hyperparameter-log": _Named("type", hyperparameters.LOG),
    "hyperparameter-categorical": _Named("type", hyperparameters.CATEGORICAL),
    "check-grid-hyperparameter": _Grid(),
    "length": LENGTH,
    "check-positive-length": POSITIVE_LENGTH,
    "log-action": logs.LOG_ACTION,
    "log-legacy-action-cancel-retries": logs.LOG_ACTION,
    "log-legacy-action-exclude-node": logs.LOG_ACTION,
    "log-policy": logs.LOG_POLICY,
    "log-policies": logs.LOG_POLICIES,
    "profiling": PROFILING,
    "security": SECURITY,
}

#: What a case says, and a pattern of our words for it.
FACTS = {
    "": "",
    ".*": "",
    "minval must be less than maxval": r"minval .* must be below maxval",
    "begin_on_batch must be less than end_after_batch": "begin_on_batch .* beyond end_after_batch",
    "storage_path must either be a relative directory or a subdirectory of host_path": "outside of host_path",
    ".* not configurable": "security_context of determined-container cannot be set",
    "container is a required property": "'container' must be set",
    "Exactly one of connection_string or account_url must be set": "exactly one of connection_string and account_url",
    "grid search is in use but count was not provided": "a grid search needs .* set count",
    'a length object must have one attribute named "batches", "records", or "epochs"': "exactly one unit",
    'must be one of "cancel_retries" or "exclude_node"': "not one of cancel_retries, exclude_node",
    '"name" must be set': "'name' must be set",
    'container_path must not be "."': "working directory itself cannot be mounted",
    "host_path must be an absolute path": "must be an absolute path",
    "credential and connection_string must not both be set": "credential goes with account_url",
    "prefix cannot contain /../": "leave '..' out",
    "must be a valid memory size": "is not a size",
}


def collect(file: str, part: str) -> list[Any]:
    """The cases of one part of a file; none where the files are not there."""
    document = cases.load(file)
    part_cases = document[part] if document is not None else []
    assert isinstance(part_cases, list)
    return [pytest.param(case, id=str(case["id"])) for case in part_cases if case.get("wire_relevant", True)]


def of(file: str, part: str) -> pytest.MarkDecorator:
    """Run a test on every case of one part of a file."""
    return pytest.mark.parametrize("case", collect(file, part))


def shape(schema: str) -> Shape:
    return SHAPES[schema.removesuffix(".json")]


def sane(schema: str, value: Json) -> tuple[Json, ProblemReport]:
    report = ProblemReport()
    return shape(schema).check(value, (), report), report


def complete(schema: str, value: Json) -> ProblemReport:
    checked, report = sane(schema, value)
    shape(schema).finish(shape(schema).fill(checked), (), report)
    return report


def plain(value: Any) -> Any:
    """Without what is null: null is the same as absent."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items() if item is not None}
    return [plain(item) for item in value] if isinstance(value, list) else value


def matches(got: Any, expected: Any) -> bool:
    """Equal, where ``*`` stands for anything that is not null."""
    if expected == "*":
        return got is not None
    if isinstance(got, dict) and isinstance(expected, dict):
        return got.keys() == expected.keys() and all(matches(got[key], expected[key]) for key in got)
    if isinstance(got, list) and isinstance(expected, list):
        return len(got) == len(expected) and all(map(matches, got, expected))
    return bool(got == expected)


def is_reported(report: ProblemReport, error: str) -> bool:
    """Whether the fact of ``error`` is among what was found, at its path."""
    parts = re.fullmatch(r"<config>(?P<path>[^:]*):\s?(?P<fact>.*)", error)
    path, fact = (parts["path"].lstrip("."), parts["fact"]) if parts else (None, error)
    return any(
        (path is None or re.fullmatch(path, problem.path)) and re.search(FACTS[fact], problem.message)
        for problem in report.problems
    )


def _is_of_the_past(value: object) -> bool:
    """Whether it is, or has, a searcher that is read for display alone, and that no editor should offer."""
    inner = value.get("searcher", value) if isinstance(value, dict) else None
    return isinstance(inner, dict) and inner.get("name") in searcher.END_OF_LIFE


@of("expconf_schema", "cases")
def test_schema(case: Any) -> None:
    """What is legal, complete, refused, defaulted and merged is as each case says; what is legal, editors take."""
    assert departure("expconf_schema", case["id"]) is None
    for schema in case.get("sane_as", []):
        assert sane(schema, case["input"])[1].problems == []
        if not _is_of_the_past(case["input"]):
            jsonschema_rs.validate(shape(schema).json_schema(), case["input"])
    for schema in case.get("complete_as", []):
        assert complete(schema, case["input"]).problems == []
    for schema, errors in case.get("sanity_errors", {}).items():
        report = sane(schema, case["input"])[1]
        assert [error for error in errors if not is_reported(report, error)] == []
    for schema, errors in case.get("completeness_errors", {}).items():
        report = complete(schema, case["input"])
        assert [error for error in errors if not is_reported(report, error)] == []


@pytest.mark.parametrize(
    "case", [entry for entry in collect("expconf_schema", "cases") if "defaulted" in entry.values[0]]
)
def test_defaults(case: Any) -> None:
    """Defaults are those of the cases, and what is defaulted stays as it is when it is read again."""
    schema = shape(case["default_as"])
    checked, report = sane(case["default_as"], case["input"])
    assert report.problems == []
    filled = schema.fill(checked)
    again, report = sane(case["default_as"], filled)
    assert (plain(again), report.problems) == (plain(filled), [])
    assert schema.fill(again) == filled
    if case["default_as"] == "experiment.json":
        where = Layers(master_checkpoint_storage={"type": "directory", "container_path": "/c"})
        filled = {**parse_experiment(case["input"], rng=random.Random(1), layers=where).document}
        assert filled.pop("checkpoint_storage") is not None
        assert filled.pop("hang") == {"after": 60, "policy": "warn"}  # our own
        filled["resources"] = {**filled["resources"], "shm_size": None}  # type: ignore[dict-item]  # of the cluster
    assert matches(plain(filled), plain(case["defaulted"]))


@pytest.mark.parametrize("case", [entry for entry in collect("expconf_schema", "cases") if "merged" in entry.values[0]])
def test_merge(case: Any) -> None:
    """Two layers unite as the cases say."""
    high, above = sane(case["merge_as"], case["input"])
    low, below = sane(case["merge_as"], case["merge_src"])
    assert above.problems == below.problems == []
    assert plain(shape(case["merge_as"]).merge(high, low)) == plain(case["merged"])


@of("task_container_defaults", "merge")
def test_container_defaults_merge(case: Any) -> None:
    """A pool's defaults over the master's."""
    report = ProblemReport()
    merged = container_defaults.merged(case["self"], case["other"], report)
    assert (plain(merged), report.problems) == (case["expect"], [])


@of("task_container_defaults", "apply")
def test_container_defaults_apply(case: Any) -> None:
    """Defaults of the cluster below what an experiment, or a task that is none, says itself."""
    report = ProblemReport()
    layer = container_defaults.as_layer(container_defaults.merged(case["defaults"], None, report), slots=1)
    if case.get("kind") == "command":
        own = {"environment": case["command_environment"]}
        known: Shape = COMMAND
        layer = {"environment": layer["environment"]}
    else:
        own, known = case["experiment"], EXPERIMENT
    merged = plain(known.merge(known.check(own, (), report), known.check(layer, (), report)))
    assert report.problems == []
    expected = case["expect"]
    if set(expected) <= {"cpu", "cuda", "rocm"}:
        expected = {"environment_variables": expected}
        merged["environment"]["environment_variables"] = {"cpu": merged["environment"]["environment_variables"]["cpu"]}
    for name, value in expected.items():
        assert {**merged, **merged["environment"]}[name] == value


@of("task_container_defaults", "log_policies")
def test_container_defaults_log_policies(case: Any) -> None:
    """Policies of the cluster in both spellings, without duplicates."""
    report = ProblemReport()
    checked = container_defaults.CONTAINER_DEFAULTS.check(case["input"], (), report)
    if "expect_error_contains" in case:
        assert case["expect_error_contains"] == 'log_policies have duplicated names "policy name"'
        (problem,) = report.problems
        assert problem.path == "log_policies"
        assert "duplicated name 'policy name'" in problem.message
        return
    assert (plain(container_defaults.CONTAINER_DEFAULTS.fill(checked)), report.problems) == (case["expect"], [])


@of("task_container_defaults", "devices")
def test_container_defaults_devices(case: Any) -> None:
    """Devices unite by their place in the container, in either spelling."""
    report = ProblemReport()
    devices = resources.DEVICES
    high, low = devices.check(case["then"], (), report), devices.check(case["first"], (), report)
    assert (devices.fill(devices.merge(high, low)), report.problems) == (case["expect"], [])


@of("task_container_defaults", "command_config")
def test_command_config(case: Any) -> None:
    """What a notebook's or a command's configuration must hold."""
    report = ProblemReport()
    COMMAND.finish(COMMAND.fill(COMMAND.check(case["config"], (), report)), (), report)
    departs = departure("task_container_defaults", case["id"])
    assert (report.problems == []) == (departs.expect if departs else case["expect_ok"])
