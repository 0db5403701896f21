"""The verbs of both command lines: Determined's as written down here (`DET`), and those that ours has."""

from __future__ import annotations

from collections.abc import Iterator

import click

from tenax.cli.main import cli

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


def det_verbs() -> Iterator[Path_]:
    """The words of each verb of `det`."""
    for noun, verbs in DET.items():
        if not verbs:
            yield (noun,)
        for verb in verbs.split():
            yield (noun, *verb.split(":"))


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
