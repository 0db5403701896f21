"""``docs/det-and-tenax.md``: verbs of Determined's command line beside ours, made from both.

    .venv/bin/python -m tests.docs.side_by_side > docs/det-and-tenax.md

Which verbs `det` has is written down in `tests.kits.cli.verbs`; a test of `tests/compat` compares that with its parser.
Which of them are left out, and why, is read from the file that those tests use.
"""

from __future__ import annotations

from pathlib import Path

import click

from tenax.cli.console.lazy import LazyGroup
from tenax.cli.main import cli
from tests.kits.cli.verbs import DET, Path_, det_verbs, ours

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "det-and-tenax.md"
LEFT_OUT = ROOT / "tests" / "compat" / "left_out.txt"

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


def left_out() -> dict[Path_, str]:
    """What this master does not have, as nouns and verbs of `det`, and why."""
    found = {}
    for line in LEFT_OUT.read_text().splitlines():
        name, _, why = line.partition("  ")
        if name and not name.startswith("#") and "." not in name and "_" not in name:
            found[tuple(name.split())] = why.strip()
    return found


def counterpart(verb: Path_, known: dict[Path_, click.Command]) -> Path_ | None:
    """The command of `tenax` for a verb of `det`; None: there is none."""
    meant = _VERBS.get(verb, (_NOUNS.get(verb[0], verb[0]), *verb[1:]))
    if meant in known:
        return meant
    group = cli.get_command(click.Context(cli), meant[0])
    if len(meant) == 2 and isinstance(group, LazyGroup) and (meant[0], group.aliases.get(meant[1], "")) in known:
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
