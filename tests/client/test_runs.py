"""Conditions on runs as people write them, lines of logs as they ask for them, metadata as they change it."""

from __future__ import annotations

import json

import pytest

from tenax.cli.run import changed, leaves
from tenax.client.connection.session import Session
from tenax.client.runs import filter_text, require_columns
from tenax.client.trials import LogFilter
from tenax.errors import InvalidInput
from tenax.jsonvalue import Json, JsonObject
from tests.kits.pretend_master import PretendMaster


def field(text: str) -> JsonObject:
    (made,) = json.loads(filter_text([text]))["filterGroup"]["children"]
    assert isinstance(made, dict)
    return made


@pytest.mark.parametrize(
    ("text", "column", "operator", "value", "location", "kind"),
    [
        ("state=COMPLETED", "state", "=", "COMPLETED", "RUN", "TEXT"),
        ("hp.lr > 0.01", "hp.lr", ">", 0.01, "RUN_HYPERPARAMETERS", "NUMBER"),
        ("hp.flag=true", "hp.flag", "=", True, "RUN_HYPERPARAMETERS", "TEXT"),
        ("metadata.team.lead~Ada", "metadata.team.lead", "contains", "Ada", "RUN_METADATA", "TEXT"),
        ("metadata.day>=2026-01-31", "metadata.day", ">=", "2026-01-31", "RUN_METADATA", "DATE"),
        ("experimentName!~7", "experimentName", "notContains", "7", "RUN", "TEXT"),
        ("validation.loss.min<=1e-3", "validation.loss.min", "<=", 0.001, "VALIDATIONS", "NUMBER"),
        ("training.a.b.last!=2", "training.a.b.last", "!=", 2.0, "TRAINING", "NUMBER"),
        ("inference.speed.mean>5", "inference.speed.mean", ">", 5.0, "CUSTOM_METRIC", "NUMBER"),
        ("localId='7'", "localId", "=", "7", "RUN", "TEXT"),
    ],
)
def test_a_condition(text: str, column: str, operator: str, value: Json, location: str, kind: str) -> None:
    """Its column says where it stands, its value how it is compared."""
    assert field(text) == {
        "kind": "field",
        "columnName": column,
        "operator": operator,
        "value": value,
        "location": f"LOCATION_TYPE_{location}",
        "type": f"COLUMN_TYPE_{kind}",
    }


def test_a_column_alone_has_to_be_there() -> None:
    """``metadata.team`` means that there is one."""
    assert field("metadata.team")["operator"] == "notEmpty"
    assert json.loads(filter_text([], archived=True)) == {
        "filterGroup": {"kind": "group", "conjunction": "and", "children": []},
        "showArchived": True,
    }


@pytest.mark.parametrize("text", ["hp.lr>>0.01", "hp.lr==0.1", "hp.lr=>1", "name=!x"])
def test_an_operator_that_there_is_not(text: str) -> None:
    """It is refused, with those that there are; in quotes it is a value."""
    with pytest.raises(InvalidInput, match=r"write one of != >= <= = > < !~ ~"):
        filter_text([text])
    assert field("name='=x'")["value"] == "=x"


def test_a_column_that_no_run_has(master: PretendMaster) -> None:
    """It is refused with names like it, where any run has such columns; metadata comes and goes."""
    columns = [{"column": name} for name in ("id", "state", "hp.lr", "hp.width", "metadata.team")]
    master.on("GET", "/api/v1/projects/3/columns", {"columns": columns})
    with Session(master.url, token="t") as session:
        require_columns(session, ["hp.lr>9", "metadata.tea=a", "validation.loss.min<1"], [3])
        with pytest.raises(InvalidInput, match=r"No run has 'hp\.lrr'; there is hp\.lr\."):
            require_columns(session, ["hp.lr>9", "hp.lrr>0.01"], [3])


@pytest.mark.parametrize("text", ["", " ", "=5", ">"])
def test_what_is_no_condition(text: str) -> None:
    """It is refused with how one looks."""
    with pytest.raises(InvalidInput, match="COLUMN OPERATOR VALUE"):
        filter_text([text])


def test_lines_that_are_asked_for() -> None:
    """A level means it and all above; what is not said restricts nothing."""
    assert set(LogFilter().query().values()) == {None}
    assert LogFilter(level="error", ranks=(0, 3)).query()["levels"] == ["LOG_LEVEL_ERROR", "LOG_LEVEL_CRITICAL"]
    assert LogFilter(ranks=(0, 3)).query()["rankIds"] == [0, 3]
    with pytest.raises(InvalidInput, match="LOUD"):
        LogFilter(level="LOUD").query()


def test_metadata_is_changed_by_paths() -> None:
    """Values are JSON where they are any; the document given stays as it was."""
    before: JsonObject = {"a": {"b": 1}, "c": "x"}
    assert changed(before, ["a.d=[1]", "e=yes", "n=2"], ["c"]) == {"a": {"b": 1, "d": [1]}, "e": "yes", "n": 2}
    assert before == {"a": {"b": 1}, "c": "x"}
    assert leaves({"a": {"b": 1, "empty": {}}, "c": "x"}) == [("a.b", "1"), ("a.empty", "{}"), ("c", "x")]
    for settings, unwanted, message in (
        (["x"], [], "KEY=VALUE"),
        (["c.d=1"], [], "holds no keys"),
        ([], ["z"], "no z"),
    ):
        with pytest.raises(InvalidInput, match=message):
            changed(before, settings, unwanted)
