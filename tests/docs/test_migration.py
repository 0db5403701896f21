"""What the page for people from Determined says of their configurations is what becomes of them."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import get_args, get_origin

import pytest
import yaml
from pydantic import BaseModel

from tenax.config.agent import AgentSettings
from tenax.config.master import MasterSettings
from tenax.config.problems import ConfigError
from tenax.config.resolve import parse_experiment
from tenax.config.schema.experiment import EXPERIMENT
from tenax.config.schema.legacy import IGNORED_SECTIONS
from tenax.jsonvalue import JsonObject

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "migrate-from-determined.md").read_text()
#: Keys that Determined's configurations do not have.
OURS = {"hang"}
BASE: JsonObject = {
    "entrypoint": "true",
    "hyperparameters": {},
    "searcher": {"name": "single", "metric": "loss"},
    "checkpoint_storage": {"type": "directory", "container_path": "/data"},
}


def rows(title: str) -> list[tuple[str, list[str]]]:
    """(the first cell, what the second has in code) of the table whose first column has that title."""
    lines = iter(PAGE.splitlines())
    for line in lines:
        if line.startswith(f"| {title} |"):
            break
    next(lines)
    found = []
    for line in lines:
        if not line.startswith("|"):
            break
        first, second = line.strip("|").split(" | ")
        found.append((first.strip().strip("`"), re.findall(r"`([^`]+)`", second)))
    return found


def resolved(fragment: str) -> tuple[JsonObject, tuple[str, ...]]:
    """A whole configuration with these lines in it, and what is told about it."""
    own = yaml.safe_load(fragment)
    done = parse_experiment({**BASE, **own}, rng=random.Random(1))
    return done.document, done.notices


def test_the_whole_configuration_is_taken_as_it_is() -> None:
    """Nothing is told about it, what it says is in the result, and it says something of every key."""
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    written = yaml.safe_load(text)
    done = parse_experiment(text, rng=random.Random(1))
    assert done.notices == ()
    assert set(EXPERIMENT.shapes) - set(IGNORED_SECTIONS) - OURS == set(written)
    assert all(f"`{key}`" in PAGE for key in OURS)
    assert done.document["searcher"] == {**done.document["searcher"], **written["searcher"]}  # type: ignore[dict-item]
    for key in ("name", "labels", "max_restarts", "data", "preemption_timeout", "workspace", "records_per_epoch"):
        assert done.document[key] == written[key]


@pytest.mark.parametrize(("fragment", "told"), rows("in the file"))
def test_what_is_translated_is_told(fragment: str, told: list[str]) -> None:
    """In the words that the page quotes."""
    _, notices = resolved(fragment)
    assert told
    for words in told:
        assert any(words in notice for notice in notices), (words, notices)


@pytest.mark.parametrize(("fragment", "told"), rows("refused"))
def test_what_is_refused_says_why(fragment: str, told: list[str]) -> None:
    """In the words that the page quotes."""
    with pytest.raises(ConfigError) as caught:
        resolved(fragment)
    assert told
    for words in told:
        assert words in str(caught.value)


@pytest.mark.parametrize("key", sorted(IGNORED_SECTIONS))
def test_what_has_no_effect_is_named(key: str) -> None:
    """Each section without effect is on the page, accepted, and not in the result."""
    assert f"`{key}`" in PAGE
    document, _ = resolved(f"{key}: {{}}")
    assert document.get(key) is None


def keys_of(settings: type[BaseModel], before: str = "") -> set[str]:
    """The dotted names of all settings."""
    found = set()
    for name, field in settings.model_fields.items():
        found.add(before + name)
        inner = [one for one in (field.annotation, *get_args(field.annotation)) if isinstance(one, type)]
        for one in inner:
            if issubclass(one, BaseModel):
                found |= keys_of(one, "" if get_origin(field.annotation) is tuple else f"{before}{name}.")
    return found


OPERATORS = [("Determined's master.yaml", MasterSettings), ("Determined's agent.yaml", AgentSettings)]


@pytest.mark.parametrize(("title", "settings"), OPERATORS)
def test_settings_of_the_operator_are_what_the_page_says(title: str, settings: type[BaseModel]) -> None:
    """What it sends people to exists; what it says is gone is refused by name."""
    known = keys_of(settings)
    same = PAGE.split(f"| {title} |")[1].split("The same as before: ")[1].split(".\n")[0]
    assert set(re.findall(r"`([^`]+)`", same)) <= known
    for old, new in rows(title):
        assert set(new) - {"det user-group", "scheduler"} <= known
        assert not set(re.findall(r"[a-z_.]+", old)) & known
