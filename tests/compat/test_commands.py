"""`det command`: a program run once, with Determined's own client."""

from __future__ import annotations

import re
from pathlib import Path
from typing import cast

from tests.compat.client import PYTHON, Det, RealClient, Sdk
from tests.kits.machine import wait_for

NO_SLOTS = ("--config", "resources.slots=0")
#: Waits until it is killed.
WAITING = ("sleep", "3600")


def listed(det: Det, *options: str) -> list[dict[str, object]]:
    return cast("list[dict[str, object]]", det("cmd", "list", "--json", *options).json)


def state(det: Det, command: str) -> dict[str, object]:
    return cast("dict[str, object]", det("cmd", "describe", command, "--json").json)


def waiting(det: Det, *options: str) -> str:
    """A command that runs until it is killed."""
    command = str(det("cmd", "run", "-d", *NO_SLOTS, *options, *WAITING).out).strip()
    wait_for(lambda: state(det, command)["state"] == "RUNNING", "a running command")
    return command


def test_a_command_is_run_and_its_output_followed(det: Det) -> None:
    """It prints what the program prints, of both streams, until the program ends."""
    done = det("cmd", "run", *NO_SLOTS, "sh", "-c", "echo here I am; echo over there >&2; pwd; exit 7")
    assert "here I am" in done.out
    assert "over there" in done.out
    command = re.findall(r"[0-9a-f]{8}-[0-9a-f-]{27}", done.out)[0]
    told = state(det, command)
    assert told["state"] == "TERMINATED"
    assert "(exit code 7)" in str(told["exitStatus"])
    assert told["username"] == "determined"
    assert told["workspaceName"] == "Uncategorized"


def test_one_word_is_a_line_for_the_shell(det: Det) -> None:
    """Several are a program and its arguments, untouched by any shell."""
    assert "2 words" in det("cmd", "run", *NO_SLOTS, "set -- a b; echo $# words").out
    assert "$HOME" in det("cmd", "run", *NO_SLOTS, "echo", "$HOME").out


def test_files_travel_with_a_command(det: Det, tmp_path: Path) -> None:
    """A context directory, and what is included under its own name."""
    (tmp_path / "context").mkdir()
    (tmp_path / "context" / "inside.txt").write_text("content of the context")
    (tmp_path / "beside.txt").write_text("content beside it")
    done = det(
        *("cmd", "run", *NO_SLOTS, "-c", tmp_path / "context", "-i", tmp_path / "beside.txt"),
        *("sh", "-c", "cat inside.txt beside.txt"),
    )
    assert "content of the context" in done.out
    assert "content beside it" in done.out


def test_a_command_has_slots_and_the_environment_of_a_task(det: Det, tmp_path: Path) -> None:
    """A configuration file, overridden on the command line; one slot unless it says otherwise."""
    file = tmp_path / "command.yaml"
    file.write_text("description: named in a file\nenvironment:\n  environment_variables: [FROM_FILE=yes]\n")
    script = (
        "echo $DET_TASK_TYPE $FROM_FILE $DET_SLOT_IDS; test -n $DET_SESSION_TOKEN && test -z $TENAX_TASK_ENTRYPOINT"
    )
    done = det("cmd", "run", "--config-file", file, "sh", "-c", script)
    assert re.search(r"COMMAND yes \[\d\]", done.out)
    (mine,) = (one for one in listed(det) if one["description"] == "named in a file")
    assert mine["exitStatus"] == "resources exited successfully with a zero exit code"


def test_a_task_knows_its_cluster(det: Det) -> None:
    """The info files are there, and what the library reads from them."""
    code = "from tenax.core import *; import tenax.core as c; i = c.get_cluster_info(); print('type', i.task_type)"
    assert "type COMMAND" in det("cmd", "run", *NO_SLOTS, "python3", "-c", code).out


def test_a_task_with_determined_itself_knows_its_cluster_too(det: Det) -> None:
    """Its package reads fixed paths, which such a task sees as its own."""
    code = "import determined as d; i = d.get_cluster_info(); print('type', i.task_type, 'trial', i._trial_info)"
    assert "type COMMAND trial None" in det("cmd", "run", *NO_SLOTS, PYTHON, "-c", code).out


def test_commands_are_listed_logged_configured_and_killed(det: Det, admin: RealClient) -> None:
    """By id and by the beginning of an id; only its owner and administrators end one."""
    command = waiting(det, "--config", "description=to be killed")
    assert command in det("cmd", "list", "-q").out.split()
    assert [one["state"] for one in listed(det) if one["id"] == command] == ["RUNNING"]
    assert "to be killed" in det("cmd", "config", command[:13]).out
    assert "sleep" in det("cmd", "config", command).out
    assert command not in admin.det("cmd", "list", "-q").out
    assert command in admin.det("cmd", "list", "-q", "--all").out
    assert det("cmd", "list", "--csv").out.startswith("id,username,description,state")
    det("cmd", "kill", command[:13])
    wait_for(lambda: state(det, command)["state"] == "TERMINATED", "the end of the command")
    assert state(det, command)["exitStatus"] == "killed by determined"
    assert "killed" in det("cmd", "logs", command).out
    assert det("cmd", "kill", "11111111-1111-4111-8111-111111111111", check=False).code != 0


def test_logs_are_followed_cut_and_filtered(det: Det) -> None:
    """As those of trials: the head, the tail, one stream."""
    command = str(det("cmd", "run", "-d", *NO_SLOTS, "sh", "-c", "seq 5; echo wrong >&2").out).strip()
    assert "wrong" in det("cmd", "logs", "-f", command).out
    lines = [line for line in det("task", "logs", "--stdtype", "stdout", command).out.splitlines() if "||" in line]
    assert [line.rsplit(" ", 1)[1] for line in lines] == ["1", "2", "3", "4", "5"]
    assert "wrong" in det("cmd", "logs", "--stdtype", "stderr", command).out
    for end, expected in (("--head", "1"), ("--tail", "5")):
        told = det("cmd", "logs", end, "1", "--stdtype", "stdout", command).out
        assert [line.rsplit(" ", 1)[1] for line in told.splitlines() if "||" in line] == [expected]


def test_the_priority_of_a_command_can_be_changed(det: Det, sdk: Sdk) -> None:
    """It is that of its task; what is out of range is said."""
    command = waiting(det)
    assert "Set priority" in det("cmd", "set", "priority", command, "7").out
    (mine,) = (line for line in det("task", "list", "--csv").out.splitlines() if command in line)
    assert mine.split(",")[-3:] == ["7", "default", ""]
    assert "1 (most urgent) to 99" in det("cmd", "set", "priority", command, "700").out
    det("cmd", "kill", command)


def test_a_template_lies_below_a_command(det: Det, tmp_path: Path) -> None:
    """Named on the command line; one that is not there is refused."""
    file = tmp_path / "template.yaml"
    file.write_text("resources: {slots: 0}\nenvironment: {environment_variables: [FROM=template]}\n")
    det("template", "create", "for-commands", file)
    assert "from template" in det("cmd", "run", "--template", "for-commands", "sh", "-c", "echo from $FROM").out
    assert "no-such" in det("cmd", "run", "--template", "no-such", "true", check=False).err
    det("template", "remove", "for-commands")


def test_what_is_not_offered_says_so(det: Det) -> None:
    """Lists are empty; starting one ends with a sentence."""
    for noun in ("notebook", "shell", "tensorboard"):
        assert det(noun, "list", "--json").json == []
    assert "notebooks are not offered yet" in det("notebook", "start", check=False).err
    assert "shells are not offered yet" in det("shell", "start", check=False).err
    assert "TensorBoards are not offered yet" in det("tensorboard", "start", "1", check=False).err
