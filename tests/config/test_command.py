"""Configurations of commands and generic tasks: layers, defaults, refusals."""

from __future__ import annotations

import random
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenax.config.command import ResolvedCommand, command_wishes, parse_command
from tenax.config.problems import ConfigError
from tenax.config.resolve import Layers, PoolLayer
from tenax.config.schema.command import COMMAND
from tenax.config.templates import check_template, for_struct
from tenax.jsonvalue import JsonObject

POOL = PoolLayer(
    name="big", default_priority=7, task_container_defaults={"environment_variables": ["A=pool", "B=pool"]}
)


def parsed(config: str | JsonObject, *, generic: bool = False, **below: object) -> ResolvedCommand:
    layers = Layers(**below)  # type: ignore[arg-type]
    return parse_command(config, rng=random.Random(1), title="Command", layers=layers, generic=generic)


def at(document: JsonObject, *path: str) -> object:
    value: object = document
    for step in path:
        value = cast("dict[str, object]", value)[step]
    return value


def test_one_slot_one_machine_and_three_words_are_the_defaults() -> None:
    """A line for the shell is a list of one word."""
    made = parsed("entrypoint: make test", pool=POOL)
    assert (made.slots, made.priority, at(made.document, "entrypoint")) == (1, 7, ["make test"])
    assert made.description.startswith("Command (")
    assert at(made.document, "resources", "is_single_node") is True
    assert at(made.document, "resources", "resource_pool") == "big"
    assert at(made.document, "resources", "shm_size") == 4 << 30


def test_layers_win_in_their_order_and_lists_of_variables_unite() -> None:
    """One's own, the template, the pool, the master."""
    own: JsonObject = {"entrypoint": ["x"], "environment": {"environment_variables": ["A=own"]}}
    template: JsonObject = {"work_dir": "/template", "resources": {"priority": 3}, "environment": {"image": "t"}}
    master: JsonObject = {"work_dir": "/master", "image": "m", "force_pull_image": True, "log_policies": []}
    made = parsed(own, pool=POOL, template=template, task_container_defaults=master).document
    assert at(made, "environment", "environment_variables", "cpu") == ["A=pool", "B=pool", "A=own"]
    assert (at(made, "work_dir"), at(made, "resources", "priority")) == ("/template", 3)
    assert (at(made, "environment", "image", "cuda"), at(made, "environment", "force_pull_image")) == ("t", True)


def test_a_generic_task_has_a_name_a_project_and_patience() -> None:
    """What a command does not have."""
    text = "name: sweep\nworkspace: w\nproject: p\nentrypoint: [x]\npreemption_timeout: 9\n"
    made = parsed(text, generic=True)
    assert (made.description, at(made.document, "preemption_timeout")) == ("sweep", 9)
    wished = command_wishes(text, generic=True)
    assert (wished.workspace, wished.project, wished.slots) == ("w", "p", 1)
    with pytest.raises(ConfigError, match="preemption_timeout"):
        parsed(text)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"entrypoint": [""]}, "the command is empty"),
        ({"entrypoint": ["x"], "enviroment": {}}, "did you mean 'environment'"),
        ({"entrypoint": ["x"], "resources": {"slots_per_trial": 2}}, "slots_per_trial: is for experiments"),
        ({"entrypoint": ["x"], "resources": {"slots": -1, "priority": 100}}, "2 problems"),
    ],
)
def test_what_is_wrong_is_named(config: JsonObject, message: str) -> None:
    """All of it at once, with the nearest legal name."""
    with pytest.raises(ConfigError, match=message):
        parsed(config)


def test_a_problem_of_a_template_is_told_as_its_own() -> None:
    """A wrong value, and a key that nothing knows; what only experiments know is left out."""
    parsed({"entrypoint": ["x"]}, template={"searcher": {"name": "random"}, "resources": {"slots_per_trial": 4}})
    for template in ({"work_dir": 3}, {"work_dri": "x"}):
        with pytest.raises(ConfigError, match="in the template"):
            parsed({"entrypoint": ["x"]}, template=template)


def test_a_template_may_serve_all_kinds() -> None:
    """Each key is checked as one of them takes it."""
    check_template({"searcher": {"name": "random"}, "idle_timeout": "1h", "resources": {"slots": 2, "max_slots": 4}})
    with pytest.raises(ConfigError, match="3 problems"):
        check_template({"max_restarts": "x", "work_dir": 1, "resources": {"slotz": 1}})


@given(names=st.lists(st.sampled_from([*COMMAND.names(), "searcher", "project", "max_restarts"]), unique=True))
def test_what_a_command_takes_of_a_template_it_knows(names: list[str]) -> None:
    """Nothing is added, and nothing that it knows is lost."""
    taken = for_struct(dict.fromkeys(names, 1), COMMAND)
    assert set(taken) == set(names) & set(COMMAND.names())
