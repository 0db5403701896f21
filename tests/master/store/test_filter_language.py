"""The filter that people type: what it means, where it is wrong, and that nothing else than that ever comes of it."""

from __future__ import annotations

import random
from datetime import datetime, timezone

import pytest

from tenax.master.store.database.filter_language import (
    MAX_NESTED,
    MAX_QUERY,
    MAX_TERMS,
    Expression,
    Joined,
    Negated,
    QueryError,
    open_token,
    parse,
    quoted,
)
from tenax.master.store.database.filter_names import Names, bound
from tenax.master.store.database.filter_sql import Builder
from tenax.master.store.experiments.columns import EXPERIMENTS

NAMES = Names(
    EXPERIMENTS,
    hyperparameters=("lr", "optimizer.name", "a b"),
    metrics=(
        ("validation", "loss"),
        ("training", "loss"),
        ("training", "lr"),
        ("validation", "val_acc"),
        ("eval", "f 1/2"),
    ),
)
NOW = datetime(2026, 1, 31, 12, tzinfo=timezone.utc)


def shown(expression: Expression) -> str:
    """With all its parentheses."""
    if isinstance(expression, Joined):
        return "(" + (" | " if expression.any_of else " & ").join(shown(part) for part in expression.parts) + ")"
    if isinstance(expression, Negated):
        return f"!{shown(expression.part)}"
    values = ",".join(value.text for value in expression.values)
    return (
        values
        if expression.column is None or expression.operator is None
        else (f"{expression.column.text}{expression.operator.text}{values}")
    )


def sql(text: str) -> tuple[str, list[object]]:
    built = Builder(EXPERIMENTS)
    return built.condition(bound(parse(text), NAMES, caller_id=7, now=NOW)), built.parameters


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("", "()"),
        ("  ", "()"),
        ("state:error val_loss<0.5", "(state:error & val_loss<0.5)"),
        ("a OR b c", "(a | (b & c))"),
        ("a AND b OR NOT c", "((a & b) | !c)"),
        ("(a OR b) NOT (c d)", "((a | b) & !(c & d))"),
        ("NOT NOT a", "(!!a)"),
        ("or and not", "(or & and & not)"),
        ("lr >= 0.01", "(lr>=0.01)"),
        ("state:error, paused", "(state:error,paused)"),
        ('"two words" "a b"<=3', "(two words & a b<=3)"),
        (r'name:"a \"b\" \\"', '(name:a "b" \\)'),
        ("started>2026-01-31T12:00:00Z", "(started>2026-01-31T12:00:00Z)"),
        ("wow! a!=b", "(wow! & a!=b)"),
        ("OR:x", "(OR:x)"),
    ],
)
def test_what_is_typed_becomes_a_tree(text: str, tree: str) -> None:
    """AND binds stronger than OR; what stands beside one another holds together."""
    assert shown(parse(text)) == tree


@pytest.mark.parametrize(
    ("text", "wrong", "says"),
    [
        ("state:error val_los<0.5", "val_los", "did you mean val_loss"),
        ("state:eror", "eror", "there is no state eror: active"),
        ("state>error", ">", "states are compared by"),
        ("best<much", "much", "is no number"),
        ("lr<big", "big", "is no number"),
        ("val_loss<low", "low", "is no number"),
        ("started>yesterday", "yesterday", "is no time"),
        ("started>9999-12-31", "9999-12-31", "is no time"),
        ("a OR", "R", "missing at the end"),
        ("a (b", "(", "not closed"),
        ("a) b", ")", "no parenthesis"),
        ('a "b', '"b', "not closed"),
        ("state:", ":", "value is missing"),
        ("state:error,", ":error,", "value is missing"),
        ("<3", "<", "column is missing before <"),
        ("a ()", ")", "a condition is missing"),
        ("best<1,2", "2", "single value"),
        ("has:nothing", "nothing", "there is no column"),
        ("owner>anna", ">", "people are compared"),
        ("name<b", "<", "texts are compared"),
        ("a\x00b", "\x00", "NUL"),
        ("(" * (MAX_NESTED + 2), "(", "deep"),
        ("NOT " * (MAX_NESTED + 2) + "a", "N", "deep"),
        ("a " * (MAX_TERMS + 1), "a ", "conditions"),
        ("a" * (MAX_QUERY + 1), "a", "characters"),
        ("id:" + ",".join("1" * 60), None, "values"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(text: str, wrong: str | None, says: str) -> None:
    """The part that is to be changed, and what would be right there."""
    with pytest.raises(QueryError) as raised:
        sql(text)
    assert says in raised.value.message
    if wrong is not None:
        assert text[raised.value.start : raised.value.end] == wrong


@pytest.mark.parametrize(
    ("text", "column", "value"),
    [
        ("loss<1", ["validation", "loss", "last"], 1.0),
        ("val_loss<1", ["validation", "loss", "last"], 1.0),
        ("train_loss<1", ["training", "loss", "last"], 1.0),
        ("training.loss.min<1", ["training", "loss", "min"], 1.0),
        ("val_acc.max>.5", ["validation", "val_acc", "max"], 0.5),
        ('"eval.f 1/2">2', ["eval", "f 1/2", "last"], 2.0),
        ("unseen.metric.mean>2", ["unseen", "metric", "mean"], 2.0),
        ("lr<1", [["lr"]], 1.0),
        ("hp.other.name<1", [["other", "name"]], 1.0),
    ],
)
def test_a_name_means_a_hyperparameter_before_a_metric(text: str, column: list[object], value: float) -> None:
    """Of metrics those of validation first; a full name means itself."""
    parameters = sql(text)[1]
    assert parameters[: len(column)] == column
    assert parameters[-1] == value


def test_values_are_parameters() -> None:
    """Nothing that is typed stands in the statement, and patterns mean themselves."""
    text, parameters = sql('name:100%_a took>2h owner:me label:"\'; drop table x" progress>=50% 12')
    assert "drop" not in text
    assert parameters[:6] == ["%100\\%\\_a%", 7200.0, 7.0, '%"\'; drop table x"%', 50.0, "%12%"]
    assert sql("started>7d")[1] == [datetime(2026, 1, 24, 12, tzinfo=timezone.utc)]
    assert len(sql("started:2026-01-02")[1]) == 2


PIECES = (
    *(
        "state",
        "error",
        ":",
        "=",
        "!=",
        "<",
        "<=",
        ">",
        ">=",
        "(",
        ")",
        '"',
        "\\",
        " ",
        "\t",
        ",",
        "AND",
        "OR",
        "NOT",
        "has",
    ),
    *(
        "lr",
        "val_loss",
        "0.5",
        "NaN",
        "-inf",
        "1e999",
        "7d",
        "owner",
        "me",
        "label",
        "ü",
        "\U0001f600",
        "!",
        "%",
        "'",
        "--",
    ),
    *("started", "2026-01-31", "progress", "hp.", ".last", "took", "\x00", "\ud800", "9" * 30),
)


def _problem_of(text: str) -> QueryError | None:
    try:
        sql(text)
    except QueryError as error:
        return error
    return None


def test_whatever_is_typed_is_read_or_refused_with_a_place() -> None:
    """Random texts out of all that means something: nothing else is raised, and a place lies inside of the text."""
    rng = random.Random(11)
    read = 0
    for _ in range(20_000):
        text = "".join(rng.choice(PIECES) + rng.choice(("", "", " ")) for _ in range(rng.randrange(14)))
        problem = _problem_of(text)
        if problem is None:
            read += 1
        else:
            assert 0 <= problem.start <= problem.end <= len(text), text
            assert problem.message
        place = open_token(text)
        assert place is None or place[1].end == len(text)
    assert read > 2000


def test_what_is_quoted_is_read_as_itself() -> None:
    """Whatever a column is called, a completion of it names it."""
    rng = random.Random(12)
    for _ in range(3000):
        name = "".join(rng.choice(PIECES) for _ in range(rng.randrange(1, 5))).replace("\x00", "")
        if not name:
            continue
        (term,) = parse(f"{quoted(name)}<1").parts
        assert shown(term) == f"{name}<1"
