"""From an entrypoint to a program that replaces this process. Standard library only, Python 3.9.

A list is executed as it stands. A string is a shell command; one without anything that only a shell understands is
executed directly, so that no shell stands between the agent's signals and the program.
"""

from __future__ import annotations

import os

from tenax.errors import InvalidInput
from tenax.wire.task_names import CLASS_TRAINER, CLUSTER_HOOK, LAUNCHER, OWN_HOOK, names_a_class

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, MutableMapping, Sequence
    from typing import NoReturn

    from tenax.jsonvalue import Json

#: Tells the second pass of a first program that the hooks have run.
AFTER_HOOKS = "--after-hooks"
_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 _./:,@%+=-")
#: Launchers of Determined's package that take sshd on every member for granted. Where it is not they are ours.
_OVER_SSH = ("determined.launch.deepspeed", "determined.launch.horovod")
#: The one that names a file in /tmp by the allocation alone, and what it starts a Trial class with.
_ALONE_ON_A_MACHINE = "determined.launch.torch_distributed"
_CLASS_TRAINER_OF_PACKAGE = ["python3", "-m", "determined.exec.harness"]
_HOROVODRUN, _HOROVODS = "horovodrun", "tenax.launch.horovod"
#: What starts ranks on its own machine, unless it is told of the others.
_TORCHRUN = ("torchrun", "torch.distributed.run", "torch.distributed.launch")
_TOLD_OF_OTHERS = ("--nnodes", "--rdzv")


class CannotLaunch(InvalidInput):
    """The entrypoint cannot be started."""


def argv_of(entrypoint: Json, path: str) -> list[str]:
    """The words to execute. ``path``: the search path for programs. Raises InvalidInput."""
    if isinstance(entrypoint, list) and entrypoint and all(isinstance(word, str) for word in entrypoint):
        return [str(word) for word in entrypoint]
    if not isinstance(entrypoint, str) or not entrypoint.strip():
        raise InvalidInput("entrypoint is missing: give a command, as a string or as a list of strings")
    text = entrypoint.strip()
    if names_a_class(text):
        # One rank per slot, or one.
        return ["python3", "-m", LAUNCHER, "python3", "-m", CLASS_TRAINER, text]
    argv = text.split()
    if _PLAIN.issuperset(text) and "=" not in argv[0] and find_program(argv[0], path):
        return argv
    return ["/bin/sh", "-c", text]


def starting_a_class(entrypoint: Json) -> list[str]:
    """What Determined's own library does with the name of a Trial class."""
    return ["python3", "-m", "determined.launch.torch_distributed", "--", "--trial", str(entrypoint).strip()]


def sharing_a_machine(argv: Sequence[str], env: MutableMapping[str, str]) -> list[str]:
    """The words to execute where several members of a trial are on one machine: the launcher of Determined's package
    would meet itself there, in a file of one name, so ours is started in its place, for that package's ranks."""
    if not any(_ALONE_ON_A_MACHINE in word for word in argv):
        return list(argv)
    env["USE_TORCH_DISTRIBUTED"] = "True"
    words: list[str] = []
    for word in argv:
        # A word may be a line for the shell.
        word = word.replace(_ALONE_ON_A_MACHINE, LAUNCHER)
        if word == "--trial":
            words += _CLASS_TRAINER_OF_PACKAGE
        else:
            words.append(word.replace("--trial ", " ".join([*_CLASS_TRAINER_OF_PACKAGE, ""])))
    return words


def check_reaches_others(entrypoint: Json, env: Mapping[str, str], has_package: Callable[[], bool]) -> None:
    """Refuse what would not reach the other members: each would train by itself. Raises InvalidInput.

    ``has_package``: whether a launcher of Determined's is that package's own.
    """
    command = " ".join(map(str, entrypoint)) if isinstance(entrypoint, list) else str(entrypoint or "")
    for launcher in _OVER_SSH:
        if launcher in command and has_package():
            raise InvalidInput(
                f"{launcher} starts ranks on other machines over ssh, and tasks have no keys for that here: ask for no "
                "more slots than one machine has (resources.is_single_node: true), start the script with "
                f"{launcher.replace('determined', 'tenax', 1)}, which needs no ssh, or with {LAUNCHER}"
            )
    words = [word.strip("'\"") for word in command.split()]
    if any(os.path.basename(word) == _HOROVODRUN for word in words):
        raise InvalidInput(
            f"{_HOROVODRUN} starts ranks on other machines over ssh, and tasks have no keys for that here. Write "
            f"entrypoint: python3 -m {_HOROVODS} {_script_of(words)}; where the script can use torch.distributed, "
            f"python3 -m {LAUNCHER}"
        )
    if "PET_NNODES" in env or any(option in command for option in _TOLD_OF_OTHERS):
        return
    for at, word in enumerate(words):
        if word in _TORCHRUN or os.path.basename(word) in _TORCHRUN:
            raise InvalidInput(
                f"{word} starts ranks on its own machine only, and this trial has several: each would train by itself. "
                f"Write entrypoint: python3 -m {LAUNCHER} {_script_of(words[at:])}"
            )


def _script_of(words: Sequence[str]) -> str:
    """What a line starts, from its first file of Python on."""
    script = next((words[at:] for at, word in enumerate(words) if word.endswith(".py")), ["train.py"])
    return " ".join(["python3", *script])


def find_program(name: str, path: str) -> str:
    """Where the shell would find it; empty: nowhere."""
    if "/" in name:
        return name if _executable(name) else ""
    for directory in path.split(os.pathsep):
        candidate = os.path.join(directory or ".", name)
        if _executable(candidate):
            return candidate
    return ""


def _executable(path: str) -> bool:
    return os.access(path, os.X_OK) and os.path.isfile(path)


def with_interpreter(env: Mapping[str, str], interpreter: str) -> dict[str, str]:
    """The environment in which ``python`` and ``python3`` are the interpreter that this task was given."""
    result = dict(env)
    result.setdefault("PYTHONUNBUFFERED", "1")  # the last lines before a kill are the ones that matter
    home = os.path.dirname(interpreter)
    path = result.get("PATH") or os.defpath
    for name in ("python3", "python"):
        ours = os.path.join(home, name)
        if _executable(ours) and find_program(name, path) != ours:
            result["PATH"] = home + os.pathsep + path
            break
    return result


def settle_account(env: MutableMapping[str, str]) -> None:
    """Give a user of whom the system knows nothing (a uid in somebody else's image) a home and a name.

    What ``pip install --user`` brings is on PATH.
    """
    if env.get("HOME", "/") == "/" or not (env.get("USER") or env.get("LOGNAME")):
        import pwd

        try:
            home = pwd.getpwuid(os.getuid()).pw_dir
        except KeyError:
            home = "/"
            for name in ("USER", "LOGNAME"):
                env.setdefault(name, str(os.getuid()))
        if env.get("HOME", "/") == "/":
            env["HOME"] = home if home != "/" and os.access(home, os.W_OK) else os.getcwd()
    programs = os.path.join(env["PYTHONUSERBASE"], "bin") if env.get("PYTHONUSERBASE") else ""
    path = env.get("PATH") or os.defpath
    if programs and programs not in path.split(os.pathsep):
        env["PATH"] = programs + os.pathsep + path


def with_imports(env: Mapping[str, str], directory: str) -> dict[str, str]:
    """The environment in which Python first looks in ``directory``, which hands over what is found elsewhere."""
    known = env.get("PYTHONPATH", "")
    if directory in known.split(os.pathsep):
        return dict(env)
    return {**env, "PYTHONPATH": directory + os.pathsep + known if known else directory}


def replace_process(argv: list[str], env: Mapping[str, str]) -> NoReturn:
    """Become the program. Raises CannotLaunch."""
    program = find_program(argv[0], env.get("PATH") or os.defpath)
    try:
        os.execve(program or argv[0], argv, dict(env))
    except OSError as error:
        raise CannotLaunch(f"entrypoint {' '.join(argv)!r} cannot be started: {error.strerror or error}") from error


def hooks(run_dir: str) -> list[str]:
    """The startup hooks that there are: the cluster's, placed by the agent, and the one that came with the code."""
    candidates = (os.path.join(run_dir, CLUSTER_HOOK), os.path.abspath(OWN_HOOK))
    return [path for path in candidates if os.path.isfile(path)]


def sourcing(scripts: list[str], argv: list[str]) -> list[str]:
    """Words that source each hook (one that fails ends the task), then execute ``argv``."""
    shell = find_program("bash", os.environ.get("PATH") or os.defpath) or "/bin/sh"
    script = "set -e\n" + "".join(f'. "${number}"\n' for number in range(1, len(scripts) + 1))
    return [shell, "-c", f'{script}set +e\nshift {len(scripts)}\nexec "$@"', "tenax-hooks", *scripts, *argv]
