"""A submitted configuration over its layers: order, completeness, translation, and what is refused."""

from __future__ import annotations

import importlib.util
import random

import pytest

from tenax.config.problems import ConfigError
from tenax.config.resolve import Layers, PoolLayer, ResolvedExperiment, parse_experiment, stored_experiment, wishes_of
from tenax.config.schema.entrypoint import LAUNCH_MODULES
from tenax.config.schema.searcher import END_OF_LIFE
from tenax.config.schema.storage import S3Config, SharedFsConfig
from tenax.display.secrets import without_secrets
from tenax.jsonvalue import JsonObject
from tenax.search import config as search
from tenax.search.methods.adaptive_asha import AdaptiveAsha, Mode
from tenax.search.methods.async_halving import AsyncHalving
from tenax.search.methods.grid import Grid
from tenax.search.methods.random import Random
from tenax.search.methods.single import Single
from tenax.wire.task_names import LAUNCHERS, WITH_HPARAMS

STORAGE: JsonObject = {"type": "directory", "container_path": "/checkpoints"}
SMALL = """
entrypoint: python3 train.py
searcher: {name: single, metric: loss}
"""


def resolve(text: str | JsonObject, *, seed: int = 7, managed: bool = True, **layers: object) -> ResolvedExperiment:
    given = Layers(**{"master_checkpoint_storage": STORAGE, **layers})  # type: ignore[arg-type]  # by name in each test
    return parse_experiment(text, rng=random.Random(seed), layers=given, managed=managed)


def problems(text: str | JsonObject, **layers: object) -> dict[str, str]:
    """Path to message of all that is wrong; with its line where there is one."""
    with pytest.raises(ConfigError) as caught:
        resolve(text, **layers)
    return {
        problem.path + (f":{problem.line}" if problem.line else ""): problem.message
        for problem in caught.value.problems
    }


@pytest.mark.parametrize(
    ("text", "template", "given"),
    [
        ("", None, False),
        ("max_restarts: 5\n", None, True),
        ("", {"max_restarts": 5}, True),
        ("", {"debug": True}, False),
    ],
)
def test_who_says_how_often_to_try_again(text: str, template: JsonObject | None, given: bool) -> None:
    """The user's text and the template, whatever they say; a comment and a default are nobody's word."""
    resolved = resolve(SMALL + text + "# max_restarts\n", template=template)
    assert (resolved.max_restarts_given, resolved.document["max_restarts"]) == (given, 5)


def test_layers_in_order() -> None:
    """The user's text wins over the template, that over the pool, that over the master, that over the schema."""
    resolved = resolve(
        SMALL + "max_restarts: 1\n",
        template={"max_restarts": 2, "debug": True, "environment": {"environment_variables": ["A=template"]}},
        task_container_defaults={
            "environment_variables": ["A=master", "B=master"],
            "image": {"cpu": "master"},
            "preemption_timeout": 10,
        },
        pool=PoolLayer(
            name="big",
            default_priority=30,
            task_container_defaults={"image": {"cpu": "pool"}, "preemption_timeout": 20},
        ),
    ).experiment
    assert resolved.max_restarts == 1
    assert resolved.debug is True
    assert resolved.environment.environment_variables.cpu == ("A=master", "B=master", "A=template")
    assert resolved.environment.image.cpu == "pool"
    assert resolved.preemption_timeout == 20
    assert resolved.resources.priority == 30
    assert resolved.resources.resource_pool == "big"
    assert resolved.resources.shm_size == 4 << 30
    assert resolved.checkpoint_policy == "best"


def test_storage_of_workspace_and_master() -> None:
    """The workspace's storage hides the master's; a user's of another kind takes only what all kinds share."""
    workspace: JsonObject = {"type": "s3", "bucket": "team", "secret_key": "s", "save_trial_best": 4}
    assert resolve(SMALL, workspace_checkpoint_storage=workspace).experiment.checkpoint_storage == S3Config(
        bucket="team", secret_key="s", save_trial_best=4
    )
    own = SMALL + "checkpoint_storage: {type: shared_fs, host_path: /data, storage_path: mine}\n"
    storage = resolve(own, workspace_checkpoint_storage=workspace).experiment.checkpoint_storage
    assert storage == SharedFsConfig(host_path="/data", storage_path="mine", save_trial_best=4)
    assert storage.directory() == "/data/mine"


def test_a_signature_in_an_address() -> None:
    """An address is shown to everybody; what it may not hold has a place of its own, which is not."""
    storage = "{type: azure, container: c, account_url: 'https://a.blob.core.windows.net?sig=s'}"
    (problem,) = problems(SMALL + f"checkpoint_storage: {storage}\n").values()
    assert "put there what follows the '?'" in problem
    assert "sig=s" not in problem


def test_storage_without_its_kind_takes_the_kind_below() -> None:
    """A user may set one field of the cluster's storage; one that its kind does not have is refused with its line."""
    own = SMALL + "checkpoint_storage:\n  prefix: mine\n"
    layer: JsonObject = {"type": "s3", "bucket": "team"}
    assert resolve(own, master_checkpoint_storage=layer).experiment.checkpoint_storage == S3Config(
        bucket="team", prefix="mine"
    )
    reported = problems(own)
    assert reported == {
        "checkpoint_storage.prefix:5": "unknown key 'prefix'; "
        "legal here: container_path, save_experiment_best, save_trial_best, save_trial_latest"
    }


def test_drawn_values_come_from_the_generator() -> None:
    """Name and seed are drawn from what was given, the same each time, and only where the user gave none."""
    first, again, other = resolve(SMALL), resolve(SMALL), resolve(SMALL, seed=8)
    assert (first.name, first.seed) == (again.name, again.seed) != (other.name, other.seed)
    assert len(first.name.split("-")) == 3
    assert 0 <= first.seed < 1 << 31
    given = resolve(SMALL + "name: mine\nreproducibility: {experiment_seed: 4294967295}\n")
    assert (given.name, given.seed) == ("mine", 4294967295)


def test_search_as_values() -> None:
    """The search gets frozen values: the space sorted at every level, and the method with its defaults."""
    resolved = resolve(
        SMALL.replace("single", "adaptive_asha, time_metric: batches, max_time: 1000, max_trials: 16, mode: aggressive")
        + "hyperparameters: {b: {y: [1], x: {type: int, minval: 1, maxval: 2}}, a: 1e-3}\n"
    )
    assert resolved.search == search.SearchConfig(
        hyperparameters=search.Map(
            {"a": search.Const(0.001), "b": search.Map({"x": search.Int(1, 2), "y": search.Const([1])})}
        ),
        method=AdaptiveAsha("batches", 1000, 16, Mode.AGGRESSIVE),
        metric="loss",
    )


@pytest.mark.parametrize(
    ("searcher", "method"),
    [
        ("name: single", Single()),
        ("name: random, max_trials: 5", Random(5)),
        ("name: random, max_trials: 5, max_concurrent_trials: 0", Random(5, 0)),
        ("name: grid, max_concurrent_trials: 3", Grid(3)),
        (
            "name: async_halving, max_trials: 5, num_rungs: 2, time_metric: epochs, max_time: 9, divisor: 3",
            AsyncHalving("epochs", 9, 5, 2, 3.0),
        ),
    ],
)
def test_methods(searcher: str, method: search.Method) -> None:
    """Each searcher becomes the method of its name."""
    assert resolve(SMALL.replace("name: single", searcher)).search.method == method


@pytest.mark.parametrize(
    ("length", "metric", "time", "notices"),
    [("{epochs: 9}", "epochs", 9, 1), ("{records: 64}", "records", 64, 1), ("300", "batches", 300, 2)],
)
def test_older_dialect(length: str, metric: str, time: int, notices: int) -> None:
    """ASHA with ``max_length`` runs, and the user is told as what it was taken."""
    text = SMALL.replace("single", f"adaptive_asha, max_trials: 4, max_length: {length}")
    resolved = resolve(text)
    assert isinstance(resolved.search.method, AdaptiveAsha)
    assert (resolved.search.method.time_metric, resolved.search.method.max_time) == (metric, time)
    assert len(resolved.notices) == notices
    assert f"time_metric: {metric}, max_time: {time}" in resolved.notices[0]
    assert resolved.document["searcher"]["max_length"] == (time if notices == 2 else {metric: time})  # type: ignore[index, call-overload]
    assert resolve(resolved.document).notices == resolved.notices[notices:], "once translated, there is nothing to tell"


def test_both_dialects_at_once() -> None:
    """What is written in today's terms wins over ``max_length``, and that is told."""
    text = SMALL.replace(
        "single", "async_halving, num_rungs: 2, max_trials: 4, max_length: {batches: 5}, time_metric: t, max_time: 7"
    )
    resolved = resolve(text)
    assert isinstance(resolved.search.method, AsyncHalving)
    assert (resolved.search.method.time_metric, resolved.search.method.max_time) == ("t", 7)
    assert resolved.notices == ("searcher.max_length: has no effect beside time_metric 't' and max_time 7",)


@pytest.mark.parametrize("name", ["single", "random, max_trials: 2", "grid"])
def test_length_of_searchers_that_stop_nothing(name: str) -> None:
    """Under the other searchers ``max_length`` is passed on and told to end nothing."""
    resolved = resolve(SMALL.replace("single", f"{name}, max_length: {{batches: 5}}"))
    assert resolved.document["searcher"]["max_length"] == {"batches": 5}  # type: ignore[index, call-overload]
    assert resolved.notices[0].startswith("searcher.max_length: ends no trial any more")


def test_settings_without_effect_are_told() -> None:
    """What is accepted and ignored is said."""
    resolved = resolve(
        SMALL.replace("python3 train.py", "model_def:Trial")
        + "resources: {agent_label: a}\nsecurity: {kerberos: {config_file: x}}\n"
        + "environment: {image: {gpu: old}}\nhyperparameters: {lr: {type: adagrad, base: 1}}\n"
    )
    assert [notice.split(":")[0] for notice in resolved.notices] == [
        "resources.agent_label",
        "security",
        "environment.image.gpu",
        "hyperparameters.lr",
        "entrypoint",
    ]
    assert "taken as a nested map" in resolved.notices[3]
    assert resolved.experiment.environment.image.cuda == "old"


def test_all_problems_at_once() -> None:
    """Unknown keys, wrong types, missing and contradicting values are all told, each with path and line."""
    text = """\
nmae: digits
searcher:
  name: random
  metric: 3
  max_trials: 0
hyperparameters:
  lr: {type: log, minval: -1, maxval: -4, base: 10, basee: 10}
  wide: {type: double, minval: -1.7e+308, maxval: 1.7e+308}
resources: {slots_per_trial: 4, max_slots: 3}
bind_mounts:
- {host_path: foo}
workspace: lab
"""
    reported = problems(text, template="sercher: {}\n")
    assert reported == {
        "nmae:1": "unknown key 'nmae'; did you mean 'name'?",
        ":1": "'entrypoint' must be set: the command that runs the training, such as 'python3 train.py'",
        "sercher:1": "unknown key 'sercher'; did you mean 'searcher'? (in the template)",
        "searcher.metric:4": "a string is expected, and this is the number 3",
        "searcher.max_trials:5": "0 is too small: at least 1",
        "hyperparameters.lr.basee:7": "unknown key 'basee'; did you mean 'base'?",
        "hyperparameters.lr:7": "minval (-1) must be below maxval (-4)",
        "hyperparameters.wide:8": "from minval (-1.7e+308) to maxval (1.7e+308) is farther than a number can say: "
        "narrow the range",
        "resources.max_slots:9": "max_slots is 3 and each trial needs slots_per_trial = 4: "
        "none could ever start; raise max_slots",
        "bind_mounts[0].host_path:11": "'foo' must be an absolute path of the agent's machine",
        "bind_mounts[0]:11": "'container_path' must be set",
        "workspace:12": "workspace and project go together: set both, or neither for Uncategorized",
    }


@pytest.mark.parametrize(
    ("entrypoint", "meant"),
    [
        ("python3 -m tenax.launch.processe python3 train.py", "tenax.launch.processes"),
        ("[python3, -m, tenax.launch.torch_distribute, train.py]", "tenax.launch.torch_distributed"),
        ("python3 -m tenax.launch.processes python3 -m tenax.launch.hparams train.py", "tenax.launch.with_hparams"),
    ],
)
def test_a_launcher_that_is_not_there(entrypoint: str, meant: str) -> None:
    """Is told before slots are held for it, in whichever form it is written."""
    [problem] = problems(SMALL.replace("entrypoint: python3 train.py", f"entrypoint: {entrypoint}")).values()
    assert problem.startswith("there is no such module: 'tenax.launch.")
    assert problem.endswith(f"did you mean '{meant}'?")


def test_launchers_that_are_there() -> None:
    """Those that tasks know, each with its module."""
    for name in LAUNCH_MODULES:
        resolve(SMALL.replace("entrypoint: python3 train.py", f"entrypoint: python3 -m tenax.launch.{name} train.py"))
        assert importlib.util.find_spec(f"tenax.launch.{name}")
    assert {*LAUNCHERS, WITH_HPARAMS} <= {f"tenax.launch.{name}" for name in LAUNCH_MODULES}


def test_a_misspelled_kind_hides_nothing() -> None:
    """The other keys are looked at as those of the kind that was probably meant."""
    text = "entrypoint: x\nsearcher: {name: adaptive_ahsa, metric: 3, max_trails: 7}\n"
    reported = problems(text)
    assert sorted(reported) == ["searcher.max_trails:2", "searcher.metric:2", "searcher.name:2"]
    assert reported["searcher.name:2"].endswith("did you mean 'adaptive_asha'?")


def test_problem_in_words() -> None:
    """The whole message counts the problems and gives each a line of its own."""
    with pytest.raises(ConfigError) as caught:
        resolve(SMALL + "debugg: true\n")
    assert str(caught.value) == (
        "The configuration has a problem:\n  debugg (line 4): unknown key 'debugg'; did you mean 'debug'?"
    )


@pytest.mark.parametrize("name", sorted(END_OF_LIFE))
def test_searchers_of_the_past(name: str) -> None:
    """A searcher that is gone is refused, with what to use instead."""
    extra = {
        "sync_halving": ", num_rungs: 2, budget: 3",
        "adaptive": ", budget: 3",
        "adaptive_simple": ", max_trials: 2",
    }
    reported = problems(SMALL.replace("single", name + extra.get(name, "")))
    assert reported == {"searcher.name:3": f"the searcher {name!r} is no longer there: {END_OF_LIFE[name]}"}


def test_unknown_searcher() -> None:
    """A searcher that never was is refused with the nearest; one long gone with what to use."""
    assert "did you mean 'random'?" in problems(SMALL.replace("single", "radom"))["searcher.name:3"]
    assert "use adaptive_asha or random" in problems(SMALL.replace("single", "pbt"))["searcher.name:3"]


def test_asha_needs_its_time() -> None:
    """ASHA in today's terms needs both the time metric and its end."""
    text = SMALL.replace("single", "adaptive_asha, max_trials: 4")
    assert problems(text)["searcher:3"].startswith("time_metric and max_time must be set")
    assert problems(text.replace("loss", "loss, max_time: 5"))["searcher:3"].startswith("time_metric must be set")


def test_grid_needs_counts() -> None:
    """Every range of a grid needs a count, also in lists, and with the searcher in another layer."""
    ranges = (
        "hyperparameters:\n  a: {b: {type: int, minval: 1, maxval: 9}}\n"
        "  c: [1, {type: log, base: 2, minval: 0, maxval: 1}]\n  d: {type: double, minval: 0, maxval: 1, count: 3}\n"
    )
    message = "a grid search needs to know how many points to take here: set count"
    expected = {"hyperparameters.a.b:5": message, "hyperparameters.c[1]:6": message}
    assert problems(SMALL.replace("single", "grid") + ranges) == expected
    assert problems("entrypoint: x\n\n\n" + ranges, template="searcher: {name: grid, metric: loss}") == expected


def test_unmanaged_needs_no_entrypoint() -> None:
    """Only what we run needs a command."""
    text = "searcher: {name: single, metric: loss}\n"
    assert resolve(text, managed=False).experiment.entrypoint is None
    assert list(problems(text)) == [":1"]


def test_slots_is_not_slots_per_trial() -> None:
    """The name that notebooks use is refused with the right one."""
    assert "slots_per_trial" in problems(SMALL + "resources: {slots: 2}\n")["resources.slots:4"]


def test_storage_must_be_somewhere() -> None:
    """Without storage in any layer an experiment is refused."""
    assert "'checkpoint_storage' must be set" in problems(SMALL, master_checkpoint_storage=None)[":2"]


def test_problem_of_the_cluster() -> None:
    """What is wrong in the cluster's defaults is told as theirs."""
    reported = problems(SMALL, task_container_defaults={"imagee": "x"})
    assert reported["task_container_defaults.imagee"].endswith("(in the cluster's defaults; tell its operator)")


def test_resolved_is_fixed() -> None:
    """A resolved document resolves to itself, whatever is drawn, and reads back to the same values."""
    resolved = resolve(
        SMALL + "hyperparameters: {a: null, b: {c: [1]}}\n", pool=PoolLayer(name="p", default_priority=3)
    )
    assert resolve(resolved.document, seed=99).document == resolved.document
    assert stored_experiment(resolved.document) == resolved


def test_wishes() -> None:
    """What layers depend on is known before they are loaded."""
    wishes = wishes_of(
        "workspace: w\nproject: p\nresources: {slots_per_trial: 0}\n", template="resources: {resource_pool: q}"
    )
    assert (wishes.workspace, wishes.project, wishes.resource_pool, wishes.slots_per_trial) == ("w", "p", "q", 0)
    with pytest.raises(ConfigError):
        wishes_of("workspace: 3")


def test_pod_spec_of_the_kind_of_work() -> None:
    """A task with slots gets the pod for GPUs, one without that for CPUs, both below the user's."""
    defaults: JsonObject = {"cpu_pod_spec": {"kind": "cpu"}, "gpu_pod_spec": {"kind": "gpu", "spec": {"a": 1}}}
    gpu = resolve(SMALL + "environment: {pod_spec: {spec: {b: 2}}}\n", task_container_defaults=defaults)
    assert gpu.experiment.environment.pod_spec == {"kind": "gpu", "spec": {"a": 1, "b": 2}}
    cpu = resolve(SMALL + "resources: {slots_per_trial: 0}\n", task_container_defaults=defaults)
    assert cpu.experiment.environment.pod_spec == {"kind": "cpu"}


def test_pod_lists_unite_by_name() -> None:
    """Containers, volumes and variables of a pod unite by name, other lists are replaced."""
    resolved = resolve(
        SMALL
        + "environment: {pod_spec: {spec: {containers: [{name: a, env: [{name: X, value: 1}], args: [u]}], t: [2]}}}\n",
        task_container_defaults={
            "gpu_pod_spec": {
                "spec": {
                    "containers": [{"name": "b"}, {"name": "a", "env": [{"name": "Y"}], "args": ["v"]}],
                    "t": [1],
                }
            }
        },
    )
    assert resolved.experiment.environment.pod_spec == {
        "spec": {
            "containers": [
                {"name": "b"},
                {"name": "a", "env": [{"name": "Y"}, {"name": "X", "value": 1}], "args": ["u"]},
            ],
            "t": [2],
        }
    }


def test_secrets_are_blanked() -> None:
    """What is shown holds no secret, and the document itself stays whole."""
    resolved = resolve(
        SMALL + "environment: {registry_auth: {username: u, password: hush}}\ndata: {secrets: {a: hush}, b: open}\n",
        master_checkpoint_storage={"type": "s3", "bucket": "b", "access_key": "hush", "secret_key": "hush"},
    )
    assert "hush" not in str(without_secrets(resolved.document))
    assert "'open'" in str(without_secrets(resolved.document))
    assert str(resolved.document).count("hush") == 4
    assert without_secrets({"data": {"secrets": ["hush"]}}) == {"data": {"secrets": "********"}}
    assert "hush" not in repr(resolved.experiment.environment)


def test_documents_do_not_share() -> None:
    """Whoever changes one resolved document changes no other, and no default."""
    first = resolve(SMALL).document
    for value in first.values():
        if isinstance(value, dict):
            value.clear()
        if isinstance(value, list):
            value.append("changed")
    assert resolve(SMALL).document["data"] == {}
    assert resolve(SMALL).document["labels"] == []
    assert resolve(SMALL).document["min_validation_period"] == {"batches": 0}


ASHA = "adaptive_asha, time_metric: t, max_trials: 4, max_time: 9"


@pytest.mark.parametrize(
    ("searcher", "path"),
    [
        ("random, max_trials: 10000000", "searcher.max_trials:3"),
        (ASHA + ", divisor: 1e300", "searcher.divisor:3"),
        (ASHA + ", max_rungs: 1000000", "searcher.max_rungs:3"),
        (ASHA + ", bracket_rungs: [2000]", "searcher.bracket_rungs[0]:3"),
        (ASHA.replace("9", "1" + "0" * 400), "searcher.max_time:3"),
        ("adaptive_asha, max_trials: 4, max_length: {batches: 0}", "searcher.max_length:3"),
        ("async_halving, num_rungs: 600, max_trials: 4, time_metric: t, max_time: 9", "searcher.num_rungs:3"),
    ],
)
def test_searches_that_no_master_survives(searcher: str, path: str) -> None:
    """Numbers that would overflow or exhaust memory when the search starts are refused when it is submitted."""
    assert path in problems(SMALL.replace("single", searcher))


def test_grids_that_no_master_survives() -> None:
    """A grid is counted before it is made."""
    axes = "".join(f"  a{n}: {{type: double, minval: 0, maxval: 1, count: 1000}}\n" for n in range(2))
    grid = SMALL.replace("single", "grid") + "hyperparameters:\n" + axes
    assert resolve(grid)
    more = grid + "  b: {type: categorical, vals: [1, 2]}\n  c: {type: int, minval: 1, maxval: 3, count: 900}\n"
    assert problems(more)["hyperparameters:4"].startswith("the grid has 6000000 points")


def test_a_slip_of_the_pen_is_no_nested_map() -> None:
    """A kind that is nearly one is refused, one of another tool, and any of a range; another word is a map like any
    other, and said to be."""
    lines = SMALL + "hyperparameters:\n  lr: {type: itn, minval: 1, maxval: 3}\n"
    (told,) = problems(lines).values()
    assert "did you mean 'int'?" in told
    for name, meant in (("float", "double"), ("loguniform", "log"), ("choice", "categorical")):
        (told,) = problems(lines.replace("itn", name)).values()
        assert f"did you mean '{meant}'?" in told
    (told,) = problems(lines.replace("itn", "floot")).values()
    assert told == "type 'floot' is not a kind of hyperparameter; there are const, int, double, log, categorical"
    nested = resolve(SMALL + "hyperparameters:\n  pick: {type: adagrad, base: 3}\n")
    assert any("taken as a nested map" in notice for notice in nested.notices)
