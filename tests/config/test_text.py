"""YAML and JSON text: values, lines, and what is refused."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenax.config.problems import ConfigError
from tenax.config.text import read, read_object, read_scalar
from tenax.config.yaml_nodes import MAX_DEPTH

SCALARS = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text(max_size=8)
SCALARS |= st.floats(allow_nan=False, allow_infinity=False)
KEYS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=5)
DOCUMENTS = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-3", 0.001),
        ("1E5", 100000.0),
        ("-.5", -0.5),
        ("1.", 1.0),
        ("12", 12),
        ("012", 12),
        ("+7", 7),
        ("0x10", 16),
        ("0o10", 8),
        ("1_000", "1_000"),
        ("yes", "yes"),
        ("on", "on"),
        ("True", True),
        ("2024-01-01", "2024-01-01"),
        ("12:30:45", "12:30:45"),
        ("~", None),
        ("", {}),
        ("'12'", "12"),
        ("!!str 12", "12"),
    ],
)
def test_scalars_are_those_of_yaml_1_2(text: str, value: object) -> None:
    """Numbers without a dot are numbers; words, dates and times are strings."""
    scalar = read(text).value
    assert (scalar, type(scalar)) == (value, type(value))


@given(DOCUMENTS)
def test_json_is_yaml(value: object) -> None:
    """Whatever JSON carries is read as JSON reads it."""
    text = json.dumps(value)
    assert read(text).value == json.loads(text)


def test_json_with_tabs() -> None:
    """JSON may be indented by tabs, which YAML may not."""
    assert read('{\n\t"a": [1,\n\t"x"]\n}').value == {"a": [1, "x"]}


@pytest.mark.parametrize(
    "text", ["a: [1\nb: 2", "a:\n  - b: {c: &x 1, d: *x}\n<<: {e: 1e3}", '"\\ud83d\\ude00"', "a: *x"]
)
def test_both_parsers_agree(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With and without libyaml a text gives the same value, or the same problem."""
    fast = outcome(text)
    monkeypatch.setattr("yaml.__with_libyaml__", False)
    assert outcome(text) == fast


def outcome(text: str) -> object:
    try:
        return read(text)
    except ConfigError as error:
        return str(error)


def test_lines() -> None:
    """Each key and each item has its line."""
    assert read("a:\n  b:\n  - 1\n  - c: 2\n").lines == {
        (): 1,
        ("a",): 1,
        ("a", "b"): 2,
        ("a", "b", 0): 3,
        ("a", "b", 1): 4,
        ("a", "b", 1, "c"): 4,
    }


def test_aliases_and_merge_keys() -> None:
    """Anchors are copied, and a merged map gives way to the keys beside it."""
    text = "base: &b {x: 1, y: 2}\none: {<<: *b, y: 3}\ntwo: {<<: [{x: 8}, *b]}\nthree: *b\n"
    value = read(text).value
    assert value == {
        "base": {"x": 1, "y": 2},
        "one": {"x": 1, "y": 3},
        "two": {"x": 8, "y": 2},
        "three": {"x": 1, "y": 2},
    }


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("a:\n  b: [1,\nc: 2", 3, "not YAML"),
        ("a: 1\n\tb: 2", 2, "not YAML"),
        ("a: {b: 1", 1, "not YAML"),
        ("a: 1\nb: 2\na: 3", 1, "given twice (lines 1 and 3)"),
        ("a:\n  b: .nan", 2, "finite"),
        ("a: -.inf", 1, "finite"),
        ("a: 1e999", 1, "finite"),
        ("? [1]\n: 2", 1, "plain text"),
        ("a: !!python/object:os.system x", 1, "tag"),
        ("a: *nowhere", 1, "not YAML"),
        ("a: 1\n---\nb: 2", 2, "not YAML"),
        ("a: " + "9" * 5000, 1, "64 bits"),
        ("a: &a [*a]", 1, "inside itself"),
        ("[" * (MAX_DEPTH + 2) + "]" * (MAX_DEPTH + 2), 1, "deeper"),
        ("a: b\0c", None, "not YAML"),
        ('a: "\\ud800"', 1, "half of a character"),
    ],
)
def test_what_cannot_be_read(text: str, line: int | None, message: str) -> None:
    """Broken text is refused with the line where it breaks."""
    with pytest.raises(ConfigError) as caught:
        read(text)
    problem = caught.value.problems[0]
    assert problem.line == line
    assert message in problem.message


def test_aliases_that_blow_up() -> None:
    """A small text that stands for a huge document is refused before it fills memory."""
    text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
    text += "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9))
    with pytest.raises(ConfigError, match="more than 200000 values"):
        read(text)


def test_long_chains_of_merges() -> None:
    """Maps merged into maps a thousand times over are refused like any deep nesting."""
    chain = "a0: &a0 {x: 1}\n" + "".join(f"a{n}: &a{n} {{<<: *a{n - 1}}}\n" for n in range(1, 1000))
    with pytest.raises(ConfigError, match="nested deeper"):
        read(chain)


def test_deep_nesting_is_refused_not_a_crash() -> None:
    """A text nested a hundred thousand times is refused like any other."""
    with pytest.raises(ConfigError):
        read("[" * 100_000)


@pytest.mark.parametrize("text", ["- 1", "3", "text"])
def test_a_map_is_expected(text: str) -> None:
    """A configuration is a map, and what it is instead is said."""
    with pytest.raises(ConfigError, match="a map of keys and values is expected"):
        read_object(text)


@pytest.mark.parametrize("text", ["", "# only a comment", "null", "{}"])
def test_nothing_is_an_empty_map(text: str) -> None:
    """Empty text sets nothing."""
    assert read_object(text)[0] == {}


def test_short_texts() -> None:
    """What an option or a variable says is read as YAML, and taken as it is where it is none."""
    assert [read_scalar(text) for text in ("8080", "true", "[a, 1]", "a: b: c", "{x")] == [
        8080,
        True,
        ["a", 1],
        "a: b: c",
        "{x",
    ]


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    """No text does anything but give a value or a ConfigError."""
    with contextlib.suppress(ConfigError):
        json.dumps(read(text).value, allow_nan=False).encode()


def test_deep_json_with_tabs() -> None:
    """Too deep is too deep in either language."""
    with pytest.raises(ConfigError):
        read('{\n\t"a": ' + "[" * 100 + "]" * 100 + "}")


def test_merge_keys_one_over_another() -> None:
    """A key's own value wins, then what was merged first; keys stand as if each was merged below what is there."""
    value = read("{<<: [{a: 1, b: 1}, {b: 2, c: 2}], a: 9, <<: {c: 3, d: 3}}").value
    assert isinstance(value, dict)
    assert list(value.items()) == [("c", 2), ("d", 3), ("b", 1), ("a", 9)]
