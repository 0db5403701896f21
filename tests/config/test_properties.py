"""What holds for every configuration: idempotence, nulls, merging, unknown keys, and no crash whatever comes."""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenax.config.container_defaults import CONTAINER_DEFAULTS
from tenax.config.problems import ConfigError, Path, ProblemReport
from tenax.config.resolve import Layers, parse_experiment, stored_experiment
from tenax.config.schema.command import COMMAND
from tenax.config.schema.experiment import EXPERIMENT
from tenax.config.shapes import Respelled, Shape
from tenax.config.structs import Struct, Tagged
from tenax.display.secrets import without_secrets
from tenax.jsonvalue import Json, JsonObject
from tenax.search.methods.adaptive_asha import AdaptiveAsha
from tenax.search.methods.async_halving import AsyncHalving
from tenax.search.searcher import start

NAMES = st.sampled_from(["a", "b", "c"])
COUNTS = st.integers(1, 9)
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=6)
CALLED = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "Zs")), min_size=1, max_size=6)
SCALARS: st.SearchStrategy[Json] = st.none() | st.booleans() | COUNTS | TEXTS | st.floats(-9, 9)
ANYTHING = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=2))


def maps(**fields: st.SearchStrategy[object]) -> st.SearchStrategy[JsonObject]:
    """A map with any of the fields set; null now and then."""
    return st.fixed_dictionaries({}, optional={name: st.none() | field for name, field in fields.items()})  # type: ignore[return-value]


VARIABLES = st.lists(st.builds("{}={}".format, NAMES, COUNTS), max_size=3)
MOUNTS = st.lists(
    st.fixed_dictionaries({"host_path": st.just("/h"), "container_path": NAMES}),
    unique_by=lambda mount: mount["container_path"],
    max_size=3,
)
RANGES = st.tuples(st.integers(-5, 0), COUNTS).flatmap(
    lambda bounds: st.sampled_from(
        [
            {"type": "int", "minval": bounds[0], "maxval": bounds[1], "count": 2},
            {"type": "double", "minval": bounds[0], "maxval": bounds[1] + 0.5, "count": 1},
            {"type": "log", "minval": bounds[0], "maxval": bounds[1], "base": 10, "count": 3},
        ]
    )
)
LEAVES = RANGES | SCALARS | st.builds(lambda vals: {"type": "categorical", "vals": vals}, st.lists(SCALARS, min_size=1))
#: Leaves and levels have names of their own, so that two trees never disagree about which a name is.
SPACES = st.fixed_dictionaries(
    {},
    optional={"x": LEAVES, "y": LEAVES, "deep": st.fixed_dictionaries({}, optional={"x": LEAVES, "z": LEAVES})},
)
ASHA = {"time_metric": TEXTS, "max_time": COUNTS, "divisor": st.floats(1.5, 5), "max_concurrent_trials": COUNTS}
SEARCHERS = maps(metric=TEXTS, max_trials=COUNTS, mode=st.sampled_from(["standard", "aggressive"]), **ASHA)
STORAGES = maps(host_path=st.just("/h"), storage_path=NAMES, save_trial_best=COUNTS)
PARTS = maps(
    name=CALLED,
    labels=st.lists(NAMES, max_size=3),
    description=TEXTS,
    entrypoint=TEXTS | st.lists(TEXTS, min_size=1, max_size=2),
    hyperparameters=SPACES,
    searcher=SEARCHERS.map(lambda fields: {"name": "adaptive_asha", **fields}),
    checkpoint_storage=STORAGES.map(lambda fields: {"type": "shared_fs", **fields}),
    resources=maps(slots_per_trial=COUNTS, priority=COUNTS, shm_size=st.sampled_from(["1 gb", 5, "3k"]), weight=COUNTS),
    environment=maps(
        image=TEXTS | maps(cpu=TEXTS, cuda=TEXTS),
        environment_variables=VARIABLES | maps(cpu=VARIABLES, cuda=VARIABLES),
        ports=st.dictionaries(NAMES, COUNTS, max_size=2),
        proxy_ports=st.lists(COUNTS, unique=True, max_size=2).map(lambda ports: [{"proxy_port": p} for p in ports]),
    ),
    bind_mounts=MOUNTS,
    data=st.dictionaries(NAMES, st.dictionaries(NAMES, COUNTS, max_size=2), max_size=2),
    log_policies=st.lists(NAMES, unique=True, max_size=3).map(lambda names: [{"name": n, "pattern": n} for n in names]),
    slurm=maps(slots_per_node=COUNTS, sbatch_args=st.lists(TEXTS, max_size=2)),
    min_validation_period=st.builds(lambda unit, n: {unit: n}, st.sampled_from(["batches", "epochs"]), COUNTS),
)


def checked(document: Json) -> Json:
    report = ProblemReport()
    value = EXPERIMENT.check(document, (), report)
    assert report.problems == []
    return value


@given(PARTS)
def test_checking_twice_is_checking_once(document: JsonObject) -> None:
    """What was read is in today's spelling, and reads to itself."""
    assert checked(checked(document)) == checked(document)


@given(PARTS)
def test_filling_twice_is_filling_once(document: JsonObject) -> None:
    """Defaults are there after the first time."""
    filled = EXPERIMENT.fill(checked(document))
    assert EXPERIMENT.fill(filled) == filled
    assert EXPERIMENT.fill(checked(filled)) == filled


@given(PARTS, PARTS, PARTS)
def test_merging_is_associative(high: JsonObject, middle: JsonObject, low: JsonObject) -> None:
    """Layers of the same kinds unite the same, whichever two are united first."""
    a, b, c = checked(high), checked(middle), checked(low)
    merge = EXPERIMENT.merge
    assert merge(merge(a, b), c) == merge(a, merge(b, c))


@given(PARTS)
def test_nothing_is_neutral(document: JsonObject) -> None:
    """An empty layer above or below changes nothing."""
    assert EXPERIMENT.merge(checked(document), {}) == EXPERIMENT.merge({}, checked(document)) == checked(document)


@given(PARTS)
def test_null_is_unset(document: JsonObject) -> None:
    """A null stands for nothing, but in hyperparameters and free data."""
    without = {
        key: {name: item for name, item in value.items() if item is not None}
        if isinstance(value, dict) and key not in ("hyperparameters", "data")
        else value
        for key, value in document.items()
        if value is not None
    }
    assert EXPERIMENT.fill(checked(document)) == EXPERIMENT.fill(checked(without))


@given(PARTS, PARTS, st.randoms(use_true_random=False))
def test_resolved_is_fixed(document: JsonObject, template: JsonObject, rng: random.Random) -> None:
    """A resolved document resolves to itself, as text too, and reads back to the same values."""
    whole = {
        **document,
        "entrypoint": "train",
        "searcher": {"name": "adaptive_asha", "metric": "m", "max_trials": 3, "time_metric": "t", "max_time": 5},
        "checkpoint_storage": {"type": "directory", "container_path": "/c"},
    }
    resolved = parse_experiment(whole, rng=rng, layers=Layers(template=template))
    again = parse_experiment(json.dumps(resolved.document), rng=rng)
    assert again.document == resolved.document
    assert stored_experiment(resolved.document).search == resolved.search == again.search
    assert stored_experiment(resolved.document).experiment == resolved.experiment


@given(st.integers(1, 10**6), st.sampled_from(["batches", "records", "epochs", None]), st.booleans())
def test_dialects_agree(count: int, unit: str | None, adaptive: bool) -> None:
    """The older spelling of a length makes the same search as today's."""
    searcher: JsonObject = {"name": "adaptive_asha", "metric": "m", "max_trials": 4}
    if not adaptive:
        searcher = {**searcher, "name": "async_halving", "num_rungs": 3}
    old: JsonObject = {**searcher, "max_length": count if unit is None else {unit: count}}
    new: JsonObject = {**searcher, "time_metric": unit or "batches", "max_time": count}
    rest: JsonObject = {"entrypoint": "t", "checkpoint_storage": {"type": "directory", "container_path": "/c"}}
    methods = [parse_experiment({**rest, "searcher": each}, rng=random.Random(0)).search.method for each in (old, new)]
    first, second = methods
    assert first == second
    assert isinstance(first, AdaptiveAsha if adaptive else AsyncHalving)


EXTREMES = maps(
    divisor=st.floats(1.0000001, 1000),
    max_concurrent_trials=st.integers(0, 40),
    max_rungs=st.integers(1, 100),
    mode=st.sampled_from(["standard", "aggressive", "conservative"]),
    bracket_rungs=st.lists(st.integers(1, 100), max_size=5),
)


@given(st.integers(1, 40), st.integers(1, 1 << 53), EXTREMES)
def test_every_legal_search_starts(trials: int, time: int, more: JsonObject) -> None:
    """Whatever ASHA the configuration lets through has a start, with no more trials than brackets ask for."""
    searcher: JsonObject = {"name": "adaptive_asha", "metric": "m", "max_trials": trials, "time_metric": "t", **more}
    document: JsonObject = {
        "entrypoint": "t",
        "searcher": {**searcher, "max_time": time},
        "checkpoint_storage": {"type": "directory", "container_path": "/c"},
    }
    resolved = parse_experiment(document, rng=random.Random(0))
    _state, decisions = start(resolved.search, resolved.seed)
    assert decisions


def structs(shape: Shape, path: Path, wrap: JsonObject | None = None) -> Iterator[tuple[Path, list[str], JsonObject]]:
    """Every map with known keys below ``shape``: where it is, its keys, and what must stand there beside."""
    while isinstance(shape, Respelled):
        shape = shape._shape
    if isinstance(shape, Tagged):
        for name, variant in shape.variants.items():
            yield from structs(variant, path, {shape.tag: name})
    elif isinstance(shape, Struct):
        yield path, shape.names(), wrap or {}
        for name, inner in shape.shapes.items():
            yield from structs(inner, (*path, name))


def placed(path: Path, value: Json) -> Json:
    for step in reversed(path):
        assert isinstance(step, str)
        value = {step: value}
    return value


EVERY_STRUCT = [
    pytest.param(shape, *each, id=f"{name}:{'.'.join(map(str, each[0]))}{''.join(map(str, each[2].values()))}")
    for name, shape in (("experiment", EXPERIMENT), ("defaults", CONTAINER_DEFAULTS), ("command", COMMAND))
    for each in structs(shape, ())
]


@pytest.mark.parametrize(("shape", "path", "names", "beside"), EVERY_STRUCT)
def test_every_unknown_key_is_refused(shape: Shape, path: Path, names: list[str], beside: JsonObject) -> None:
    """A misspelled key anywhere is refused at its path, and the nearest legal name is told."""
    for name in names:
        wrong = name + "x"
        report = ProblemReport()
        shape.check(placed(path, {**beside, wrong: 1}), (), report)
        mine = [problem for problem in report.problems if problem.path == ".".join([*map(str, path), wrong])]
        assert len(mine) == 1
        assert "did you mean" in mine[0].message


@pytest.mark.parametrize(("shape", "path", "names", "beside"), EVERY_STRUCT)
def test_every_wrong_type_is_refused(shape: Shape, path: Path, names: list[str], beside: JsonObject) -> None:
    """Where a map is expected nothing else is taken."""
    for wrong in (3, True):
        report = ProblemReport()
        shape.check(placed(path, wrong), (), report)
        assert report.problems
    del names, beside


TOP = st.sampled_from(sorted(EXPERIMENT.names()))
WILD = st.dictionaries(TOP | NAMES, ANYTHING | PARTS, max_size=4) | PARTS


@given(WILD, WILD, WILD)
def test_whatever_comes_is_resolved_or_refused(config: JsonObject, template: JsonObject, defaults: JsonObject) -> None:
    """No document in any layer makes anything but a result or problems with words."""
    layers = Layers(template=template, task_container_defaults=defaults, workspace_checkpoint_storage=template)
    with contextlib.suppress(ConfigError):
        resolved = parse_experiment(config, rng=random.Random(0), layers=layers)
        json.dumps(without_secrets(resolved.document), allow_nan=False)


VALUES: list[Json] = [
    None,
    True,
    -1,
    0,
    3,
    1.5,
    "",
    "x",
    "..",
    [],
    ["x"],
    [None],
    [{}],
    {},
    {"type": "int"},
    {"a": None},
]


@pytest.mark.parametrize("name", sorted(EXPERIMENT.names()))
def test_any_value_for_any_key(name: str) -> None:
    """Each key with each kind of value is taken or refused, in any layer, never a crash."""
    shape = EXPERIMENT.shapes.get(name)
    inner: list[str] = sorted({key for struct in structs(shape, ()) for key in struct[1]}) if shape is not None else []
    documents: list[JsonObject] = [{name: value} for value in VALUES]
    documents += [{name: {key: value}} for key in inner for value in VALUES]
    for document in documents:
        for layers in (None, Layers(template=document)):
            with contextlib.suppress(ConfigError):
                parse_experiment(document, rng=random.Random(0), layers=layers)
