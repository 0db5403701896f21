"""``resources.constraints`` as people write it: short and long, and what is refused with what to write instead."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest

from tenax.config.command import parse_command
from tenax.config.problems import ConfigError
from tenax.config.resolve import Layers, parse_experiment
from tenax.jsonvalue import as_object
from tenax.scheduler.constraints import constraints_in
from tenax.scheduler.snapshot import Constraints

EXPERIMENT: dict[str, Any] = {"entrypoint": "x", "searcher": {"name": "single", "metric": "loss"}}
STORAGE = {"checkpoint_storage": {"type": "shared_fs", "host_path": "/tmp"}}


def resolved(constraints: Any, **resources: Any) -> Constraints | None:
    """What an experiment asks for."""
    document = {**EXPERIMENT, **STORAGE, "resources": {"constraints": constraints, **resources}}
    return constraints_in(parse_experiment(document, rng=random.Random(0), layers=Layers()).document)


@pytest.mark.parametrize(
    ("given", "means"),
    [
        (None, None),
        ({}, None),
        ({"device_name": "A100"}, Constraints(device_name=("A100",))),
        ({"device_name": ["A100", "H100"]}, Constraints(device_name=("A100", "H100"))),
        # YAML reads it as a number.
        ({"device_name": 4090}, Constraints(device_name=("4090",))),
        ({"device_memory": "80 GB"}, Constraints(device_memory=80 * 1024**3)),
        ({"device_memory": 1 << 30}, Constraints(device_memory=1 << 30)),
        # Order, and what stands there twice, mean nothing.
        ({"device_name": ["T4", "A100", "T4"]}, Constraints(device_name=("A100", "T4"))),
        ({"same": "switch"}, Constraints(same=("switch",))),
        (
            {"labels": {"zone": "a", "nvme": True, "rack": [7, "8"]}},
            Constraints((("nvme", ("true",)), ("rack", ("7", "8")), ("zone", ("a",)))),
        ),
    ],
)
def test_what_is_asked_for(given: Any, means: Constraints | None) -> None:
    """One or several; as text, whatever YAML makes of it."""
    assert resolved(given) == means


@pytest.mark.parametrize(
    ("given", "resources", "problem"),
    [
        ({"device": "A100"}, {}, "resources.constraints.device: unknown key 'device'"),
        ({"device_name": []}, {}, "resources.constraints.device_name: names 0: give 1 to 32"),
        ({"device_name": "--"}, {}, "'--' names no device"),
        ({"device_name": ["x"] * 33}, {}, "names 33: give 1 to 32"),
        ({"device_memory": "much"}, {}, "'much' is not a size"),
        ({"device_memory": -1}, {}, "resources.constraints.device_memory: -1 is too small"),
        ({"device_memory": 80}, {}, "80 bytes are less than any device has: write a unit, as in '80 GB'"),
        ({"device_name": "x" * 256}, {}, "names no device"),
        ({"labels": {"rack": 1.10}}, {}, "1.1 is a number to YAML, which changes how it is written: put it in quotes"),
        (
            {"labels": {"device_name": "A100"}},
            {},
            "'device_name' is no label: device_name and device_memory",
        ),
        ({"same": "device-name"}, {}, "'device-name' is no label: write the name of one, or device_name"),
        ({"same": "device_name"}, {"slots_per_trial": 0}, "with slots_per_trial: 0 there is none"),
        ({"labels": ["zone"]}, {}, "resources.constraints.labels: "),
        ({"labels": {"a b": "c"}}, {}, "'a b' is no label"),
        ({"labels": {"zone": "a b"}}, {}, "'a b' is no value of a label"),
        ({"labels": {"zone": {"x": 1}}}, {}, "resources.constraints.labels.zone"),
        ({"labels": {f"k{number}": "v" for number in range(33)}}, {}, "names 33 labels: at most 32"),
        ({"same": ["zo ne"]}, {}, "'zo ne' is no label: write the name of one, or device_name"),
        (
            {"device_name": "A100"},
            {"slots_per_trial": 0},
            "with slots_per_trial: 0 there is none",
        ),
    ],
)
def test_what_is_refused(given: Any, resources: Any, problem: str) -> None:
    """At its place, with what to write instead."""
    with pytest.raises(ConfigError, match=re.escape(problem)):
        resolved(given, **resources)


def test_a_command_has_them_too() -> None:
    """With its own word for slots."""
    document = {"entrypoint": ["true"], "resources": {"slots": 1, "constraints": {"labels": {"zone": "a"}}}}
    made = parse_command(document, rng=random.Random(0), title="Command", layers=Layers())
    assert constraints_in(made.document) == Constraints((("zone", ("a",)),))
    resources = {**as_object(document["resources"]), "slots": 0, "constraints": {"device_memory": "1 GB"}}
    with pytest.raises(ConfigError, match="with slots: 0 there is none"):
        parse_command({**document, "resources": resources}, rng=random.Random(0), title="Command", layers=Layers())
