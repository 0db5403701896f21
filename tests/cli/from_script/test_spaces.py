"""Values of hyperparameters as they are written on a command line."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenax.cli.console import yaml12
from tenax.cli.experiment.from_script.spaces import Space, constant_of, space_of
from tenax.config.problems import ProblemReport
from tenax.config.schema.hyperparameters import HYPERPARAMETER
from tenax.errors import InvalidInput
from tenax.jsonvalue import Json


def integers(low: int, high: int) -> Json:
    return {"type": "int", "minval": low, "maxval": high}


def doubles(low: float, high: float) -> Json:
    return {"type": "double", "minval": low, "maxval": high}


def logarithmic(low: float, high: float) -> Json:
    return {"type": "log", "base": 10, "minval": low, "maxval": high}


def one_of(*values: Json) -> Json:
    return {"type": "categorical", "vals": list(values)}


@pytest.mark.parametrize(
    ("text", "config"),
    [
        ("16..128", integers(16, 128)),
        ("-5..5", integers(-5, 5)),
        ("-9..-2", integers(-9, -2)),
        ("0..1", integers(0, 1)),
        (f"-{1 << 63}..{(1 << 63) - 1}", integers(-(1 << 63), (1 << 63) - 1)),
        ("0.0..0.5", doubles(0.0, 0.5)),
        ("0..0.5", doubles(0.0, 0.5)),
        ("0..1.0", doubles(0.0, 1.0)),
        ("1e3..1e4", doubles(1000.0, 10000.0)),
        (".5..1.", doubles(0.5, 1.0)),
        ("-1.5..-0.5", doubles(-1.5, -0.5)),
        ("-1e-3..+1E-3", doubles(-0.001, 0.001)),
        ("1e-4..1e-1:log", logarithmic(-4, -1)),
        ("0.001..10.0:log", logarithmic(-3, 1)),
        ("1..10.0:log", logarithmic(0, 1)),
        ("3e-4..1e-1:log", logarithmic(math.log10(3e-4), -1)),
        ("32,64,128", one_of(32, 64, 128)),
        ("0,0.5,1", one_of(0, 0.5, 1)),
        ("adam,sgd", one_of("adam", "sgd")),
        ("true,false", one_of(True, False)),
        ("true,1", one_of(True, 1)),
        ("True,False", one_of("True", "False")),
        ("-1,-2", one_of(-1, -2)),
        ("1,01", one_of(1, "01")),
        ('"a,b",c', one_of("a,b", "c")),
        ('"1",1', one_of("1", 1)),
        ("[1,2],[3,4]", one_of("[1,2]", "[3,4]")),
        ("../a,../b", one_of("../a", "../b")),
        ("true,false:switch", one_of(True, False)),
    ],
)
def test_spaces(text: str, config: Json) -> None:
    """As configurations have them; whether numbers are whole is how they are written."""
    space = space_of(text, "--x")
    assert space.config == config
    # 1 and 1.0 are equal, and not the same.
    assert repr(space.config) == repr(config)
    assert not space.is_constant


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7", 7),
        ("-7", -7),
        ("0", 0),
        ("007", "007"),
        ("+7", "+7"),
        ("-0", "-0"),
        (str(1 << 63), str(1 << 63)),
        ("9" * 5000, "9" * 5000),
        ("0.1", 0.1),
        ("-.5", -0.5),
        ("1e-3", 0.001),
        ("1.0", 1.0),
        ("1e999", "1e999"),
        ("inf", "inf"),
        ("nan", "nan"),
        ("true", True),
        ("false", False),
        ("True", "True"),
        ("yes", "yes"),
        ("null", "null"),
        ("", ""),
        ("adam", "adam"),
        ('"7"', "7"),
        ('"0.9,0.999"', "0.9,0.999"),
        ('"1..2"', "1..2"),
        ('""', ""),
        ("../data", "../data"),
        ("..", ".."),
        ("main..topic", "main..topic"),
        ("s3://bucket:log", "s3://bucket:log"),
        ("[1,2,3]", "[1,2,3]"),
        ('{"a": 1, "b": 2}', '{"a": 1, "b": 2}'),
        ("choice(1,2)", "choice(1,2)"),
        ("größe", "größe"),
        ("a b", "a b"),
        ("٣", "٣"),
    ],
)
def test_constants(text: str, value: Json) -> None:
    """Numbers and booleans are such where the script gets them as they were written; everything else is text."""
    for read in (space_of, constant_of):
        space = read(text, "--x")
        assert (space.config, type(space.config)) == (value, type(value))
        assert space.is_constant


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1..", "without two numbers"),
        ("..5", "without two numbers"),
        ("1..b", "without two numbers"),
        ("1e-4..:log", "without two numbers"),
        ("5..1", "is empty"),
        ("1..1", "is empty"),
        ("1...5", "is empty"),
        ("1e-1..1e-4:log", "is empty"),
        ("1..2:lin", "unknown scale 'lin'"),
        ("1..2:", "unknown scale ''"),
        ("0.0..1.0:log", "above 0"),
        ("-1.0..1.0:log", "above 0"),
        ("0..8:log", "above 0"),
        ("16..1024:log", r"16\.0\.\.1024\.0:log.*16,128,1024"),
        ("0.1:log", "a scale and no range"),
        ("0.1,0.2:log", "a scale and no range"),
        ("1..2..3", "without two numbers"),
        ("a,", "before or after a comma"),
        (",a", "before or after a comma"),
        ("a,,b", "before or after a comma"),
        ("1..5,8", "cannot be one of several"),
        ("1,1", "1 twice"),
        ("0.1,0.10", "0.10 twice"),
        ("a,b,a", "a twice"),
        ('"a', "quotation mark"),
        ('"a,b', "quotation mark|has a quotation"),
        ("x:switch", "true,false:switch"),
        ("true,true:switch", "true,false:switch"),
        ("true,false,true:switch", "true,false:switch"),
        (f"0..{1 << 63}", "too large"),
        ("0..1e999", "too large"),
        ("-1e999..0", "too large"),
    ],
)
def test_what_is_refused(text: str, message: str) -> None:
    """With its name, what is wrong, and what to write."""
    with pytest.raises(InvalidInput, match=message) as refused:
        space_of(text, "--lr")
    assert str(refused.value).startswith("--lr: ")


@pytest.mark.parametrize(
    "text", ["0o17", "0x1f", "08", "007", "1_000", "1:30", "yes", "~", "null", '"7"', '"1e-3"', '"true"']
)
def test_text_stays_text(text: str) -> None:
    """Also in the configuration, whose readers would take it for something else without quotes."""
    config = space_of(text, "--x").config
    assert isinstance(config, str)
    assert yaml12.load(yaml12.dump({"x": config}, inline=True)) == {"x": config}


@pytest.mark.parametrize("text", ["1..5", "1e-4..1e-1:log", "5..", "true,false:switch", "true:switch"])
def test_one_trial_has_no_ranges(text: str) -> None:
    """Who writes one there meant to search, or meant text."""
    with pytest.raises(InvalidInput, match="--x: "):
        constant_of(text, "--x")
    assert constant_of("a,b", "--x").config == "a,b"
    assert constant_of(f'"{text}"', "--x").config == text


def test_a_switch() -> None:
    """Is true or false, or one of both."""
    assert space_of("true:switch", "x") == Space(True, switch=True)
    assert space_of("true,false:switch", "x").points == 2


@given(st.text(alphabet='0123456789.,:-+eE"[]abtruefalsogwitch', max_size=14))
def test_every_text_is_a_space_or_is_refused(text: str) -> None:
    """And every space is one that a configuration takes."""
    try:
        space = space_of(text, "--x")
    except InvalidInput:
        return
    report = ProblemReport()
    HYPERPARAMETER.build(HYPERPARAMETER.check(space.config, (), report))
    assert report.count == 0
    assert yaml12.load(yaml12.dump(space.config, inline=True)) == space.config


@given(st.floats(min_value=1e-300, max_value=1e300), st.floats(min_value=1.001, max_value=1e6))
def test_a_logarithmic_range_has_the_ends_that_were_written(low: float, factor: float) -> None:
    """To the precision of a power."""
    space = space_of(f"{low!r}..{low * factor!r}:log", "--x")
    assert isinstance(space.config, dict)
    least, greatest = space.config["minval"], space.config["maxval"]
    assert isinstance(least, (int, float))
    assert isinstance(greatest, (int, float))
    assert math.isclose(10.0**least, low, rel_tol=1e-12)
    assert math.isclose(10.0**greatest, low * factor, rel_tol=1e-12)
