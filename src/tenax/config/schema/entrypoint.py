"""The command of an experiment: a line for the shell, or a program and its arguments."""

from __future__ import annotations

import re

from tenax.config.problems import Path, ProblemReport, unknown_choice
from tenax.config.shapes import AnyOf, ListOf, TextShape
from tenax.jsonvalue import Json

#: What an entrypoint may run of `tenax.launch`: one that is misspelled would be known only once slots are held.
LAUNCH_MODULES = ("torch_distributed", "processes", "deepspeed", "horovod", "with_hparams", "wrap_rank")
_PACKAGE = "tenax.launch."
_MODULE = re.compile(r"(?:^|\s)-m\s*tenax\.launch\.(\w+)(?=\s|$)")


def _line(value: Json, at: Path, report: ProblemReport) -> None:
    if isinstance(value, str):
        _check_modules(value, at, report)


def _argv(value: Json, at: Path, report: ProblemReport) -> None:
    if value == []:
        report.add(at, "the command is empty: give a program and its arguments, or a line for the shell")
    elif isinstance(value, list):
        _check_modules(" ".join(word for word in value if isinstance(word, str)), at, report)


def _check_modules(command: str, at: Path, report: ProblemReport) -> None:
    for name in _MODULE.findall(command):
        if name not in LAUNCH_MODULES:
            legal = [_PACKAGE + each for each in LAUNCH_MODULES]
            report.add(at, f"there is no such module: {unknown_choice(_PACKAGE + name, legal)}")


ENTRYPOINT = AnyOf(string=TextShape(filled=True, rule=_line), list=ListOf(TextShape(), rule=_argv))
