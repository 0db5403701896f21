"""Words that scripts wait for and compare, met through Determined's client: those of 0.38.1; ours may follow."""

from __future__ import annotations

import ast
import functools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

import tenax
from tenax.jsonvalue import Json, JsonObject
from tests.compat.client import Det, RealClient, Sdk
from tests.compat.experiments import CONFIG

EXIT_ZERO = "resources exited successfully with a zero exit code"
EXIT_ONE = "resources failed with non-zero exit code: container failed with non-zero exit code: 1 (exit code 1)"
#: How the output of a run begins; readers count it to see how often a trial was started.
HEAD = re.compile(r"New trial runner in \(container [0-9a-f-]{36}\) on agent [\w.-]+: \{")
NO_SLOTS = ("--config", "resources.slots=0")


@dataclass(frozen=True)
class Refusal:
    """What is asked of the bindings by an administrator, and what the refusal says."""

    what: str
    code: str
    kind: str
    words: str


REFUSALS = (
    Refusal("an experiment", "b.get_GetExperiment(s, experimentId=999999)", "NotFoundException", "not found"),
    Refusal("a trial", "b.get_GetTrial(s, trialId=999999)", "NotFoundException", "not found"),
    Refusal("a task", "b.get_GetTask(s, taskId='1.none')", "NotFoundException", "not found"),
    Refusal("a command", "b.get_GetCommand(s, commandId='none')", "NotFoundException", "not found"),
    Refusal(
        "a checkpoint", "b.get_GetCheckpoint(s, checkpointUuid=str(uuid.uuid4()))", "NotFoundException", "not found"
    ),
    Refusal("a model", "b.get_GetModel(s, modelName='none-such')", "NotFoundException", "not found"),
    Refusal("a user", "b.get_GetUserByUsername(s, username='none-such')", "NotFoundException", "not found"),
    Refusal("a workspace", "b.get_GetWorkspace(s, id=999999)", "NotFoundException", "not found"),
    Refusal("a project", "b.get_GetProject(s, id=999999)", "NotFoundException", "not found"),
    Refusal("a template", "b.get_GetTemplate(s, templateName='none-such')", "NotFoundException", "not found"),
    Refusal("an agent", "b.post_EnableAgent(s, agentId='none-such')", "NotFoundException", "not found"),
    Refusal("a webhook", "b.delete_DeleteWebhook(s, id=999999)", "NotFoundException", "not found"),
    Refusal(
        "a user that there is",
        "client.create_user('admin', admin=False, password='Passw0rd-1')",
        "APIException",
        "already exists",
    ),
    Refusal(
        "a group that there is",
        "[b.post_CreateGroup(s, body=b.v1CreateGroupRequest(name='words', addUsers=[])) for _ in range(2)]",
        "APIException",
        "already exists",
    ),
    Refusal(
        "too many slots",
        "client.create_experiment({**config, 'resources': {'slots_per_trial': 999}}, directory)",
        "APIException",
        "request unfulfillable",
    ),
    Refusal(
        "too many slots on one node",
        "client.create_experiment({**config, 'resources': {'slots_per_trial': 3, 'is_single_node': True}}, directory)",
        "APIException",
        "request unfulfillable",
    ),
    Refusal(
        "an inactive user",
        "authentication.login(master, 'words-off', 'Passw0rd-1', certs.Cert())",
        "ForbiddenException",
        "user is not active",
    ),
)


@pytest.fixture(scope="module")
def inactive(admin: RealClient) -> None:
    """A user who may not log in any more."""
    code = (
        "client.login(master, user, password)\n"
        "client.create_user('words-off', admin=False, password='Passw0rd-1').deactivate()\n"
    )
    admin.sdk(code, **_login(admin))


@pytest.mark.parametrize("row", REFUSALS, ids=lambda row: row.what)
def test_a_refusal_says_what_scripts_look_for(admin: RealClient, inactive: None, row: Refusal, tmp_path: Path) -> None:
    """Of the kind that the client makes of its status."""
    (tmp_path / "train.py").touch()
    code = (
        "import uuid\n"
        "from determined.common import api\n"
        "from determined.common.api import authentication, bindings as b, certs\n"
        "client.login(master, user, password)\n"
        "s = client._determined._session\n"
        f"try:\n    result = ['', str({row.code})]\n"
        "except (api.errors.APIException, api.errors.ForbiddenException) as error:\n"
        "    result = [type(error).__name__, str(error)]\n"
    )
    kind, words = cast("list[str]", admin.sdk(code, **_login(admin), config=CONFIG, directory=str(tmp_path)))
    assert (kind, row.words in words) == (row.kind, True), words


def test_a_run_begins_and_ends_in_these_words(det: Det, sdk: Sdk, tmp_path: Path) -> None:
    """Its head exactly once and first, with secrets masked; how its program ended."""
    secret: dict[str, Json] = {"data": {"secrets": {"key": "t0p-s3cret"}}}
    for command, words in (("true", EXIT_ZERO), ("sh -c 'exit 1'", EXIT_ONE)):
        code = (
            "experiment = client.create_experiment(config, directory)\n"
            # Listed at once: the first trials are there when the answer comes.
            "trial = experiment.list_trials()[0].id\n"
            "experiment.wait(interval=0.2)\n"
            "result = trial"
        )
        config: dict[str, Json] = {**CONFIG, **secret, "entrypoint": command}
        trial = sdk(code, config=config, directory=str(tmp_path))
        log = det("trial", "logs", trial).out
        assert (len(HEAD.findall(log)), "t0p-s3cret" in log, words in log) == (1, False, True), log
        ours = [line for line in log.splitlines() if "||" in line]
        assert HEAD.search(ours[0]), log


def test_the_exit_status_of_a_command(det: Det) -> None:
    """It has "success" after success only."""
    for argv, words in ((["true"], EXIT_ZERO), (["sh", "-c", "echo no success >&2; exit 1"], EXIT_ONE)):
        done = det("cmd", "run", *NO_SLOTS, "-d", *argv, check=False)
        command = re.findall(r"[0-9a-f]{8}-[0-9a-f-]{27}", done.out)[0]
        det("task", "logs", "-f", command)
        listed = cast("list[JsonObject]", det("cmd", "list", "--all", "--json").json)
        (status,) = (str(row["exitStatus"]) for row in listed if row["id"] == command)
        assert (words in status, "success" in status) == (True, argv == ["true"])


def _login(admin: RealClient) -> dict[str, Json]:
    return {"master": admin.url, "user": "admin", "password": admin.password}


@pytest.mark.parametrize(("error", "words"), [("NotFound", "not found"), ("AlreadyExists", "already exists")])
def test_every_refusal_of_the_master_has_the_words(error: str, words: str) -> None:
    """Wherever one is written, by whatever name: also those that no row above meets."""
    classes, calls = _of_the_master()
    errors = {error, *(kind.name for kind in classes if error in map(ast.unparse, kind.bases))}
    lacking = []
    for file, node in calls:
        if isinstance(node.func, ast.Name) and node.func.id in errors and node.args:
            told = node.args[0]
            # What another function words is looked at there.
            if isinstance(told, (ast.Constant, ast.JoinedStr, ast.BinOp)) and words not in ast.unparse(told):
                lacking.append(f"{file.name}:{node.lineno} {ast.unparse(told)}")
    assert lacking == []


@functools.cache
def _of_the_master() -> tuple[list[ast.ClassDef], list[tuple[Path, ast.Call]]]:
    """Its classes and calls; read once, for it is large."""
    classes: list[ast.ClassDef] = []
    calls: list[tuple[Path, ast.Call]] = []
    for file in sorted((Path(tenax.__file__).parent / "master").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ClassDef):
                classes.append(node)
            elif isinstance(node, ast.Call):
                calls.append((file, node))
    return classes, calls
