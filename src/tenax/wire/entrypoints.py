"""What an entrypoint runs of the code that is sent with it, as far as its words say. Pure; standard library only, 3.9.

Only what is plain is looked at: the first command of a line for the shell, up to what only a shell can read. Of
launchers and of ``uv run`` the script is what they start; of options that are not known here nothing is guessed. What a
module's name means depends on what is installed: it is missing where the code has its package and not the module. The
module of a trial class comes with the code, as a rule: who has it installed says so (`EntrypointCode.is_missing`).
"""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import dataclass

from tenax.wire.task_names import CLASS_TRAINER, LAUNCHER_NAMES, WITH_HPARAMS, names_a_class

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from typing import Optional

    from tenax.jsonvalue import Json

_SCRIPTS = (".py", ".sh")
_SHELLS = ("bash", "sh")
#: Where a line becomes the shell's; these end a word, too.
_OF_THE_SHELL, _ENDS_A_WORD = re.compile(r"[$`;&|<>(){}*?\n]"), ";&|<>\n"
#: In a path, what the shell or `tenax.launch.with_hparams` puts something else for; and an address.
_NO_FILE = re.compile(r"^~|[{}]|://")
#: What a shell sets for one command; and what starts the words behind it.
_ASSIGNMENT, _BEFORE_COMMANDS = re.compile(r"[A-Za-z_]\w*="), ("exec", "env", "nohup", "time")
_CLASS_TRAINERS = (CLASS_TRAINER, "determined.exec.harness")
#: Start a script on each slot: a file of Python, which none of their options takes, or a module.
_LAUNCHERS = ("torchrun", "deepspeed", "accelerate-launch", "horovodrun")
_LAUNCHER_MODULES = ("torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch")
#: Options of ``uv run`` with a value, and without; not ``--directory``, which leaves that of the code.
_UV_VALUES = (
    "--with --with-editable --with-requirements --python -p --extra --no-extra --group --no-group --only-group "
    "--env-file --package --project --index --default-index --index-url -i --extra-index-url --find-links -f "
    "--python-platform --cache-dir --config-file --link-mode --color --refresh-package --upgrade-package -P"
)
_UV_FLAGS = (
    "--script -s --no-sync --frozen --locked --isolated --active --no-project --all-extras --dev --no-dev --only-dev "
    "--all-groups --no-default-groups --all-packages --exact --inexact --no-editable --no-env-file --no-config "
    "--no-cache -n --offline --no-progress --quiet -q --verbose -v --refresh --upgrade -U --managed-python "
    "--no-managed-python --no-python-downloads --native-tls --no-index"
)


@dataclass(frozen=True)
class EntrypointCode:
    """A script by its relative path, a module, or a trial class (``model_def:MyTrial``)."""

    name: str
    is_module: bool = False

    def __str__(self) -> str:
        return f"the module {self.module}" if self.is_module else self.name

    @property
    def module(self) -> str:
        """Its dotted name; of a class that of its module."""
        return self.name.partition(":")[0]

    @property
    def needs_code(self) -> bool:
        """It is the module of a trial class that no package has: it is expected among the files."""
        return self.is_module and ":" in self.name and "." not in self.module

    def is_missing(self, files: Collection[str], *, installed: bool = False) -> bool:
        """Of these normalised paths none is it. ``installed``: a module may be there without being sent."""
        if not self.is_module:
            return os.path.normpath(self.name) not in files
        top = self.module.partition(".")[0]
        if f"{top}.py" not in files and f"{top}/__init__.py" not in files:
            # A folder without __init__ hides nothing that is installed.
            folder = any(name.startswith((f"{top}.", f"{top}/")) for name in files)
            return self.needs_code and not folder and not installed
        path = self.module.replace(".", "/")
        return not any(name.startswith((f"{path}.", f"{path}/")) for name in files)


def code_run_by(entrypoint: Json) -> Optional[EntrypointCode]:
    """What an entrypoint, a line or a list of words, runs of the code; None where that is not plain."""
    if isinstance(entrypoint, str):
        if names_a_class(entrypoint):
            return EntrypointCode(entrypoint.strip(), is_module=True)
        words = _of_line(entrypoint)
        while words and _ASSIGNMENT.match(words[0]):
            words = words[1:]
    else:
        words = [str(word) for word in entrypoint] if isinstance(entrypoint, list) else []
    return _of_command(words)


def _of_line(line: str) -> list[str]:
    """Of the first command, as far as they stand in the line; none where a quotation does not end."""
    line = line.replace("\\\n", " ").strip()
    match = _OF_THE_SHELL.search(line)
    if match:
        line = line[: match.start()]
        line = line if match[0] in _ENDS_A_WORD else re.sub(r"\S+$", "", line)
    try:
        return shlex.split(line)
    except ValueError:
        return []


def _of_command(words: Sequence[str]) -> Optional[EntrypointCode]:
    while words and words[0] in _BEFORE_COMMANDS:
        words = words[1:]
        while words and _ASSIGNMENT.match(words[0]):
            words = words[1:]
    if not words:
        return None
    program, rest = words[0], words[1:]
    name = os.path.basename(program)
    if name.rstrip("0123456789.") == "python":
        return _of_python(rest)
    if name in _SHELLS:
        option, _, rest = _after_options(rest, values="oO", ends="c")
        return None if option else _script(rest)
    if name in _LAUNCHERS:
        return _of_launcher(rest)
    if [name, *rest[:1]] == ["accelerate", "launch"]:
        return _of_launcher(rest[1:])
    if [name, *rest[:1]] == ["uv", "run"]:
        return _of_uv(rest[1:])
    if program.startswith("./") or "/" in program:
        return _file(program) if program.startswith("./") or program.endswith(_SCRIPTS) else None
    return None


def _of_python(words: Sequence[str]) -> Optional[EntrypointCode]:
    option, value, rest = _after_options(words, values="WX", ends="cm")
    if option == "m":
        return _of_module(value, rest)
    return None if option else _script(rest)


def _after_options(words: Sequence[str], *, values: str, ends: str) -> tuple[str, str, Sequence[str]]:
    """The option behind which no script stands, its value, and the words that follow; "" and "" where there is none.

    ``values``: letters of options with a value, which may be the next word; ``ends``: of options that end them.
    """
    while words and words[0].startswith("-") and words[0] != "-":
        word, words = words[0], words[1:]
        if word == "--check-hash-based-pycs":
            words = words[1:]
        if word.startswith("--"):
            continue
        at = next((at for at, letter in enumerate(word) if letter in values + ends), None)
        if at is None:
            continue
        value = word[at + 1 :]
        if not value:
            value, words = (words[0] if words else ""), words[1:]
        if word[at] in ends:
            return word[at], value, words
    return "", "", words


def _of_module(name: str, rest: Sequence[str]) -> Optional[EntrypointCode]:
    if name in (*LAUNCHER_NAMES, WITH_HPARAMS):
        # They take options of their own before a lone --, and a file of Python, -m MODULE, or a command line.
        if rest[:1] == ["--autohorovod"]:
            rest = rest[1:]
        if rest and rest[0].startswith("-") and rest[0] != "-m" and "--" in rest:
            rest = rest[list(rest).index("--") + 1 :]
        if rest[:1] == ["--trial"]:
            return _class(rest[1:])
        if rest and (rest[0] == "-m" or rest[0].endswith(".py")):
            return _of_python(rest)
        return _of_command(rest)
    if name in _LAUNCHER_MODULES:
        return _of_launcher(rest)
    if name in _CLASS_TRAINERS:
        return _class(rest)
    return EntrypointCode(name, is_module=True) if name else None


def _of_launcher(words: Sequence[str]) -> Optional[EntrypointCode]:
    at = next((at for at, word in enumerate(words) if word.endswith(".py") and word[0] != "-"), len(words))
    flag = next((place for place, word in enumerate(words[:at]) if word in ("-m", "--module")), None)
    if flag is None:
        return _script(words[at:])
    named = [word for word in words[flag + 1 : flag + 2] if not word.startswith("-")]
    return EntrypointCode(named[0], is_module=True) if named else None


def _of_uv(words: Sequence[str]) -> Optional[EntrypointCode]:
    module = False
    while words and words[0].startswith("-"):
        word, words = words[0], words[1:]
        name, has_value, _ = word.partition("=")
        if word == "--":
            break
        if name in _UV_VALUES.split():
            words = words if has_value else words[1:]
        elif word in ("-m", "--module"):
            module = True
        elif word not in _UV_FLAGS.split():
            return None
    if module:
        return _of_module(words[0], words[1:]) if words else None
    return _script(words) if words and words[0].endswith(".py") else _of_command(words)


def _class(words: Sequence[str]) -> Optional[EntrypointCode]:
    return EntrypointCode(words[0], is_module=True) if words and names_a_class(words[0]) else None


def _script(words: Sequence[str]) -> Optional[EntrypointCode]:
    return _file(words[0]) if words and words[0].endswith(_SCRIPTS) else None


def _file(path: str) -> Optional[EntrypointCode]:
    return None if os.path.isabs(path) or _NO_FILE.search(path) else EntrypointCode(path)
