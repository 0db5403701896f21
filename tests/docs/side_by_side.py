"""``docs/det-and-tenax.md``: verbs of Determined's command line beside ours, made from both.

    .venv/bin/python -m tests.docs.side_by_side > docs/det-and-tenax.md

Which verbs `det` has is written down here (`DET`); a test of `tests/compat` compares that with its parser. Which of
them are left out, and why, is read from the file that those tests use.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from tenax.cli.console.lazy import Group
from tenax.cli.main import cli

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "det-and-tenax.md"
LEFT_OUT = ROOT / "tests" / "compat" / "left_out.txt"
Path_ = tuple[str, ...]

_NTSC = "start list open config logs kill set:priority"
#: Noun -> its verbs; a colon stands between two words of one verb.
DET: dict[str, str] = {
    "agent": "list enable disable",
    "auth": "list-providers login",
    "checkpoint": "download describe delete rm",
    "command": "run list describe config logs kill set:priority",
    "config-policies": "describe set delete",
    "deploy": "",
    "dev": "auth-token curl bindings:list bindings:call",
    "experiment": "create continue list describe config logs wait list-trials list-checkpoints activate pause cancel"
    " kill archive unarchive move delete delete-tb-files download download-model-def label:add label:remove set:name"
    " set:description set:priority set:weight set:max-slots set:gc-policy set:log-retention",
    "job": "list update update-batch",
    "master": "info logs config:show config:set cluster-message:get cluster-message:set cluster-message:clear",
    "model": "list create describe register-version list-versions move delete",
    "notebook": _NTSC,
    "oauth": "client:list client:add client:remove",
    "preview-search": "",
    "project": "list create describe edit list-experiments archive unarchive delete",
    "rbac": "my-permissions list-roles list-users-roles list-groups-roles describe-role assign-role unassign-role",
    "resource-pool": "bindings:list-workspaces bindings:add bindings:remove bindings:replace",
    "resources": "raw aggregated allocations",
    "shell": f"{_NTSC} show-ssh-command show_ssh_command",
    "slot": "list enable disable",
    "task": "list create fork config logs pause unpause kill cleanup-logs",
    "template": "list create describe set set-value:config remove",
    "tensorboard": _NTSC,
    "token": "list describe create edit revoke login",
    "trial": "describe logs download kill set:log-retention support-bundle",
    "user": "list login logout whoami create edit rename activate deactivate change-password link-with-agent-user",
    "user-group": "list create describe add-user remove-user change-name delete",
    "version": "",
    "workspace": "list create describe edit delete archive unarchive list-projects list-pools list-members"
    " bindings:list bindings:set bindings:delete resource-quota:set",
}
#: Where ours has other words.
_NOUNS = {"job": "queue", "resource-pool": "pool", "resources": "usage", "user-group": "group"}
_VERBS: dict[Path_, Path_] = {
    ("master", "cluster-message", "get"): ("master", "message", "get"),
    ("master", "cluster-message", "set"): ("master", "message", "set"),
    ("master", "cluster-message", "clear"): ("master", "message", "clear"),
    ("task", "cleanup-logs"): ("master", "cleanup-logs"),
    ("experiment", "set", "gc-policy"): ("experiment", "gc-policy"),
    ("deploy",): ("up",),
    ("template", "set"): ("template", "set"),
}
_HEAD = """# det and tenax, side by side

Determined's own client works against a Tenax master, unchanged: set `DET_MASTER`. `tenax` has the same nouns and verbs,
on the same API, and most options by the same names.

What `tenax` does better, for all verbs:

- What has a name of its own (experiments, workspaces, projects, models, users, groups, webhooks, jobs) is named by it
  as well as by id, and the beginning of a command's or task's id is enough. A shell completes ids and names
  (`tenax completion`).
- Lists have filters, `--json` and `--csv`. Data goes to standard output, everything else to standard error. A narrow
  terminal cuts no id and no reason.
- What waits says why: experiments, trials, commands, tasks, jobs. `tenax experiment create -f` watches an experiment,
  and its exit code tells how it ended.
- The exit code says what went wrong ([list](cli.md#exit-codes)); for a word that is not known the nearest one is told.
- On the machine of the cluster it needs no address and no login.

Short nouns (`e`, `t`, `c`, `w`, `p`, `m`, `cmd`, `rp`, `res`, ...) are the same in both. Each command of ours with its
options: [Command line](cli.md). What is not there is refused by the master with a sentence that says so.
"""
_ONLY = """
## Only in tenax

| command | what it does |
|---|---|"""


def det_verbs() -> Iterator[Path_]:
    """The words of each verb of `det`."""
    for noun, verbs in DET.items():
        if not verbs:
            yield (noun,)
        for verb in verbs.split():
            yield (noun, *verb.split(":"))


def left_out() -> dict[Path_, str]:
    """What this master does not have, as nouns and verbs of `det`, and why."""
    found = {}
    for line in LEFT_OUT.read_text().splitlines():
        name, _, why = line.partition("  ")
        if name and not name.startswith("#") and "." not in name and "_" not in name:
            found[tuple(name.split())] = why.strip()
    return found


def ours(command: click.Command = cli, path: Path_ = ()) -> Iterator[tuple[Path_, click.Command]]:
    """Every command of `tenax` that is no group of others, by its words."""
    if not isinstance(command, click.Group):
        yield path, command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        inner = command.get_command(context, name)
        if inner is not None and not inner.hidden:
            yield from ours(inner, (*path, name))


def counterpart(verb: Path_, known: dict[Path_, click.Command]) -> Path_ | None:
    """The command of `tenax` for a verb of `det`; None: there is none."""
    meant = _VERBS.get(verb, (_NOUNS.get(verb[0], verb[0]), *verb[1:]))
    if meant in known:
        return meant
    group = cli.get_command(click.Context(cli), meant[0])
    if len(meant) == 2 and isinstance(group, Group) and (meant[0], group.aliases.get(meant[1], "")) in known:
        return (meant[0], group.aliases[meant[1]])
    return None


def page() -> str:
    """The whole page."""
    known = dict(ours())
    out = left_out()
    named: set[Path_] = set()
    parts = [_HEAD]
    for noun in DET:
        parts.append(f"\n## {noun}\n\n| det | tenax |\n|---|---|")
        if (noun,) in out and counterpart((noun,), known) is None:
            parts.append(f"| `det {noun} ...` | not there: {out[(noun,)]} |")
            continue
        for verb in (one for one in det_verbs() if one[0] == noun):
            meant = counterpart(verb, known)
            if meant is not None:
                named.add(meant)
            parts.append(f"| `det {' '.join(verb)}` | {_told(verb, meant, out)} |")
    parts.append(_ONLY)
    for path, command in known.items():
        if path not in named:
            parts.append(f"| `tenax {' '.join(path)}` | {command.get_short_help_str(limit=100)} |")
    return "\n".join(parts) + "\n"


def _told(verb: Path_, meant: Path_ | None, out: dict[Path_, str]) -> str:
    if meant is not None:
        return f"`tenax {' '.join(meant)}`"
    why = next((why for name, why in out.items() if verb[: len(name)] == name), None)
    return f"not there: {why}" if why is not None else "no verb of ours; `det` does it"


if __name__ == "__main__":
    print(page(), end="")
