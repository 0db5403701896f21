"""Named statements in files."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import pytest

from tenax.master.store.database.queries import load


def test_a_statement_is_found_by_its_name() -> None:
    """An attribute is the text of the block of that name, without its semicolon."""
    assert load("database").probe == "select 1"


def test_an_unknown_statement_says_where_it_was_sought() -> None:
    """The message names file and statement."""
    with pytest.raises(AttributeError, match=r"database/queries.sql has no statement 'nothing'"):
        _ = load("database").nothing


def test_every_file_of_statements_can_be_loaded() -> None:
    """No file has a name twice or text before its first name."""
    nouns = [
        entry.name for entry in resources.files("tenax.master.store").iterdir() if (entry / "queries.sql").is_file()
    ]
    assert len(nouns) > 10
    for noun in nouns:
        assert dir(load(noun))


def test_a_statement_holds_the_text_of_a_fragment() -> None:
    """Of its own file by name, of another by noun and name."""
    assert load("experiments").shown_state in load("experiments").views
    assert load("trials").shown_state in load("runs").views
    assert "{{" not in load("runs").views


def test_every_statement_is_asked_for_and_is_there() -> None:
    """What the modules of the store name stands in their noun's file, and nothing stands there that nobody names."""
    store = Path(__file__).parents[3] / "src" / "tenax" / "master" / "store"
    named: dict[str, set[str]] = {}
    for path in store.rglob("*.py"):
        for noun, name in _named_in(ast.parse(path.read_text())):
            assert name in dir(load(noun)), f"{path.relative_to(store)} asks for {noun}.{name}"
            named.setdefault(noun, set()).add(name)
    texts = " ".join(path.read_text() for path in store.rglob("queries.sql"))
    nouns = [path.parent.name for path in store.rglob("queries.sql")]
    within = set(re.findall(r"\{\{(?:[a-z_]+\.)?([a-z0-9_]+)\}\}", texts))
    unused = {noun: sorted(set(dir(load(noun))) - named.get(noun, set()) - within) for noun in nouns}
    assert not {noun: names for noun, names in unused.items() if names}


def test_rows_that_others_refer_to_are_held_before_they_are_changed() -> None:
    """Never in one statement: it would come to each row twice, and to the older version of one that was changed while
    it waited. Who waits for that row with the version in hand, and who refers to it, then make a deadlock."""
    schema = (Path(__file__).parents[3] / "docs" / "schema.sql").read_text()
    referred_to = set(re.findall(r"REFERENCES (\w+)\(", schema))
    assert {"allocations", "agents", "checkpoints", "experiments", "trials"} <= referred_to
    both = []
    for path in (Path(__file__).parents[3] / "src" / "tenax" / "master" / "store").rglob("queries.sql"):
        queries = load(path.parent.name)
        for name in dir(queries):
            for statement in re.sub("--.*", "", getattr(queries, name)).split(";"):
                if re.search(r"\bfor (no key )?update\b", statement):
                    changed = set(re.findall(r"\b(?:update|delete from) (\w+)", statement))
                    both += [f"{path.parent.name}.{name}: {table}" for table in sorted(changed & referred_to)]
    assert not both, both


def _named_in(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Noun and statement of each ``Q.name``, whatever ``Q`` is called."""
    nouns = {
        target.id: noun
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and (noun := _loaded(node.value))
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            noun = nouns.get(node.value.id) if isinstance(node.value, ast.Name) else _loaded(node.value)
            if noun:
                yield noun, node.attr


def _loaded(node: ast.expr) -> str:
    """The noun of ``load("noun")``; "" for anything else."""
    called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "load"
    return str(node.args[0].value) if called and isinstance(node.args[0], ast.Constant) else ""
