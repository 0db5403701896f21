"""The words behind the name of a script: whose they are, and how the script gets them."""

from __future__ import annotations

import pytest

from tenax.cli.experiment.from_script.command_line import Divided, ScriptCall, divided, script_call
from tenax.cli.experiment.from_script.spaces import constant_of, space_of
from tenax.core.hparams_in_words import filled
from tenax.errors import InvalidInput
from tenax.jsonvalue import JsonObject

OPTIONS = {"--time": True, "--dry-run": False, "-f": False, "-i": True}


@pytest.mark.parametrize(
    ("line", "ours", "flags", "rest"),
    [
        ("train.py --lr 0.1", "train.py", "--lr 0.1", ""),
        ("--time 3 train.py --lr 0.1 --dry-run", "--time 3 train.py --dry-run", "--lr 0.1", ""),
        ("train.py --lr 0.1 --time 16 --depth 2", "train.py --time 16", "--lr 0.1 --depth 2", ""),
        ("train.py --time=16 --lr=2", "train.py --time=16", "--lr=2", ""),
        ("train.py --clip -inf -f -i a -i", "train.py -f -i a -i", "--clip -inf", ""),
        ("train.py -- --time 3 -- x", "train.py", "", "--time 3 -- x"),
        ("train.py --lr 1 -- --lr 2", "train.py", "--lr 1", "--lr 2"),
        ("--tiem 3 train.py --lr 1", "--tiem 3", "train.py --lr 1", ""),
        ("train.py --times 3", "train.py", "--times 3", ""),
        ("", "", "", ""),
        ("-- train.py", "", "", "train.py"),
    ],
)
def test_whose_words_they_are(line: str, ours: str, flags: str, rest: str) -> None:
    """Ours are found on both sides of the script, and nowhere after a lone --."""
    assert divided(line.split(), OPTIONS) == Divided(*(tuple(part.split()) for part in (ours, flags, rest)))


def call(flags: str, *rest: str, more: tuple[str, ...] = ()) -> ScriptCall:
    return script_call(flags.split(), rest, more, space_of)


@pytest.mark.parametrize(
    ("flags", "command", "hparams"),
    [
        ("--lr 0.1", "--lr {lr}", {"lr": 0.1}),
        ("--batch-size=32", "--batch-size={batch_size}", {"batch_size": 32}),
        ("-b 32 -lr 0.1", "-b {b} -lr {lr}", {"b": 32, "lr": 0.1}),
        ("lr=0.1 +model.depth=4", "lr={lr} +model.depth={model.depth}", {"lr": 0.1, "model": {"depth": 4}}),
        ("--model.depth 4 --model.width 8", "--model.depth {model.depth} --model.width {model.width}",
         {"model": {"depth": 4, "width": 8}}),
        ("--shift -0.5 --low -.5", "--shift {shift} --low {low}", {"shift": -0.5, "low": -0.5}),
        ("--x -1..1", "--x {x}", {"x": {"type": "int", "minval": -1, "maxval": 1}}),
        ("--amp --lr 1", "{amp:+--amp} --lr {lr}", {"amp": True, "lr": 1}),
        ("--lr 1 --no-amp", "--lr {lr} {no_amp:+--no-amp}", {"no_amp": True, "lr": 1}),
        ("--amp true,false:switch", "{amp:+--amp}", {"amp": {"type": "categorical", "vals": [True, False]}}),
        ("--input -", "--input {input}", {"input": "-"}),
        ("fit data.csv --lr 1", "fit data.csv --lr {lr}", {"lr": 1}),
        ("--data=a=b,c", "--data={data}", {"data": {"type": "categorical", "vals": ["a=b", "c"]}}),
        ("--data=", "--data={data}", {"data": ""}),
        ("", "", {}),
    ],
)  # fmt: skip
def test_how_the_script_gets_them(flags: str, command: str, hparams: JsonObject) -> None:
    """In their order and form, with a place for each value."""
    made = call(flags)
    assert made.command == tuple(command.split())
    assert made.hyperparameters() == hparams


def test_what_stands_after_the_dashes_is_untouched() -> None:
    """Also where it looks like a hyperparameter's name in braces, or like a space."""
    rest = ("--layers", "64", "32", "{lr}", "1..2", "", "--", "{{lr}}")
    made = call("--lr 0.1", *rest)
    assert filled(made.command, {"lr": 0.1}) == ["--lr", "0.1", *rest]
    assert made.hyperparameters() == {"lr": 0.1}


def test_a_flag_that_is_called_like_an_option_of_ours() -> None:
    """Is given as --hparam, and reaches the script as its own."""
    made = call("--lr 1", more=("time=1..5", "model.metric=a"))
    assert made.command == ("--lr", "{lr}", "--time", "{time}", "--model.metric", "{model.metric}")
    for wrong in ("time", "=5", "--time=5", "+time=5"):
        with pytest.raises(InvalidInput, match="write NAME=VALUE"):
            call("", more=(wrong,))


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--layers 64 32", "'32' belongs to no flag: .* stand after --"),
        ("--lr 1 data.csv", r"'data\.csv' belongs to no flag"),
        ("--lr 1 --lr 2", "--lr is there twice"),
        ("--batch-size 1 --batch_size 2", "--batch_size is there twice"),
        ("--2x 1", "'--2x' is no flag with a name"),
        ("---lr 1", "'---lr' is no flag"),
        ("lr=true,false:switch", "lr=true,false"),
        ("--lr 1..", "--lr: 1.. is a range without two numbers"),
    ],
)
def test_what_is_refused(flags: str, message: str) -> None:
    """With what to write instead."""
    with pytest.raises(InvalidInput, match=message):
        call(flags)


@pytest.mark.parametrize("flags", ["--model 1 --model.depth 2", "--model.depth 2 --model 1", "a.b=1 a.b.c.d=2"])
def test_a_value_is_no_map(flags: str) -> None:
    """Whichever comes first."""
    with pytest.raises(InvalidInput, match="makes it a map of values"):
        call(flags).hyperparameters()


def test_one_trial() -> None:
    """Its commas are text."""
    made = script_call(["--betas", "0.9,0.999"], (), (), constant_of)
    assert made.hyperparameters() == {"betas": "0.9,0.999"}
