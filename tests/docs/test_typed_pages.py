"""The other pages, typed from top to bottom on one cluster, on which what they speak of is there."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import http.server
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tenax.client.connect import Client
from tenax.jsonvalue import JsonObject
from tests.docs.desk import Desk, Hint, desk, walk
from tests.docs.pages import ShownFile, commands, parts, scripts
from tests.docs.stand_ins import with_stand_ins
from tests.kits.machine import wait_for

#: A page starts and stops clusters, on a machine that others use as well.
pytestmark = pytest.mark.timeout(900)

MANY = 17
#: A search of nine trials, number 7 to 15; three of them fail.
SEARCH = 7
#: Those that wait: for more slots than there are.
WAITING = (16, 17)
TRAIN = """
import json
from tenax import core

with core.init() as context:
    hparams = context.info.trial.hparams
    for step in range(1, 10):
        loss = 1 / (step + hparams["lr"])
        print(f"step {step}: loss={loss}")
        context.train.report_training_metrics(step, {"loss": loss})
        context.train.report_validation_metrics(step, {"loss": loss, "epochs": step})
        if step == hparams.get("fail_at"):
            raise RuntimeError("as it was asked to")
        if step % 3 == 0:
            with context.checkpoint.store_path({"steps_completed": step}) as (path, uuid):
                (path / "step.json").write_text(json.dumps(step))
"""
CONFIG: JsonObject = {
    "name": "resnet",
    "entrypoint": "python3 train.py",
    "hyperparameters": {"lr": 0.1, "fail_at": 99},
    "searcher": {"name": "single", "metric": "loss"},
    "labels": ["sweep"],
    "max_restarts": 0,
}
LRS = {"type": "categorical", "vals": [0.1, 0.2, 0.3]}
GRID: JsonObject = {
    "hyperparameters": {"fail_at": {"type": "categorical", "vals": [99, 98, 4]}, "lr": LRS},
    "searcher": {"name": "grid", "metric": "loss"},
}
WEBHOOK = 'tenax webhook create team https://hooks.example/T0 --slack --on-state ERROR --on-log "CUDA out of memory"'
#: Of a password that people make up.
PASSWORD = "Long-enough-1"


@pytest.fixture(scope="module")
def receiver() -> Iterator[str]:
    """Where webhooks go to."""

    class Answers(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *arguments: object) -> None:
            """Nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def group() -> Iterator[Desk]:
    """A cluster with the pools of the page, and experiments of every kind."""
    with desk(slots="4") as made:
        with_stand_ins(made)
        (shown,) = (part for part in parts("machines.md") if isinstance(part, ShownFile) and part.name == "master.yaml")
        # What waits in vain may wait, and webhooks may go to this machine.
        settings = {
            **yaml.safe_load(shown.text),
            "launch_error": False,
            "webhooks": {"allowed_networks": ["127.0.0.0/8"]},
        }
        (made.home / "cluster.yaml").write_text(yaml.safe_dump(settings))
        made.tenax("up", "--config", "cluster.yaml")
        code = made.home / "code"
        code.mkdir()
        (code / "train.py").write_text(TRAIN)
        (code / "work.py").write_text("print('worked')\n")
        (made.home / "evaluate.py").write_text("print('evaluated')\n")
        (made.home / "config.yaml").write_text(yaml.safe_dump(CONFIG))
        (made.home / "data").mkdir()
        with made.client() as client:
            fill(client, code)
        yield made


def fill(client: Client, code: Path) -> None:
    for number in range(1, MANY + 1):
        config = {**CONFIG, **(GRID if number == SEARCH else {})}
        if number in WAITING:
            config["resources"] = {"slots_per_trial": 99}
        made = client.create_experiment(config, code, activate=number in (1, SEARCH, 12, *WAITING))
        assert made.id == number
        if number == SEARCH:
            wait_for(lambda: len(client.experiment(SEARCH).trials()) == 9 or None, "the trials of the search")
    wait_for(lambda: all(client.experiment(number).has_ended for number in (1, SEARCH, 12)) or None, "their end")


def running(*arguments: str) -> str:
    """The id in what a command says that creates something."""
    found = re.findall(r"[0-9a-f]{8}-[0-9a-f-]{27}", " ".join(arguments))
    return str(found[-1])


def test_workspaces(group: Desk) -> None:
    """The workspace and the project that other pages go on to speak of, and a model."""
    uuid = "0d6e4079-4c8e-4f5f-9a39-2f4e2b1c0001"
    best = Hint(put=lambda made: {uuid: made.first("uuid", "checkpoint", "list", "1")})
    walk(
        group,
        "workspaces.md",
        {f'tenax model register-version digit-reader {uuid} --comment "best of 12"': best},
    )


def test_machines(group: Desk) -> None:
    """A second machine comes, is turned off and on, and is forgotten; the queue is put in order."""
    with contextlib.ExitStack() as on:

        def join(made: Desk) -> None:
            (made.home / "join").write_text((made.cluster / "join-token").read_text())
            on.enter_context(
                made.running(
                    f"tenax agent --master-url http://127.0.0.1:{made.port} --agent-id box3 --dir {made.home}/box3"
                    " --slots 3 --join-token-file join",
                    "connected",
                )
            )

        def leave(made: Desk) -> None:
            on.close()
            wait_for(lambda: re.search(r"\bbox3\s+away\b", made.tenax("agent", "list")), "its end")

        def leave_or_come_and_leave(made: Desk) -> None:
            if "box3" not in made.tenax("agent", "list"):
                join(made)
            leave(made)

        def join_and_leave(made: Desk) -> None:
            join(made)
            leave(made)

        walk(
            group,
            "machines.md",
            {
                # tests/e2e/test_bootstrapped.py has a machine run it.
                "tenax agent bootstrap --master-url http://FIRST:8080 | ssh box4 sh": Hint(
                    put=lambda made: {"FIRST:8080": f"127.0.0.1:{made.port} --same-machine", "ssh box4 sh": "sh -n"}
                ),
                "tenax agent list": Hint(before=join),
                # Once it has left, and the second time once it had come back.
                "tenax agent remove box3": Hint(before=leave_or_come_and_leave, answer=lambda _: "y"),
                "tenax agent remove box3 --force": Hint(before=join_and_leave, answer=lambda _: "y"),
                "tenax agent join-token revoke 4": Hint(
                    put=lambda made: {"4": made.first("id", "agent", "join-token", "list")}
                ),
                "tenax master logs -f": Hint(until="info"),
            },
        )
    assert "box3" in group.said


def test_quotas(group: Desk) -> None:
    """A file is looked at, applied, shown, and removed."""

    def people(made: Desk) -> None:
        with made.client() as client:
            client.create_user("sam", PASSWORD)
            client.create_group("students")

    walk(group, "quotas.md", {"tenax quota apply quotas.yaml --dry-run": Hint(before=people)})
    assert "the workspace vision: at most 32 slots (was: any number of slots)" in group.said
    assert "sam in vision" in group.said


def test_checkpoints(group: Desk) -> None:
    """What a policy keeps, shown and applied."""
    walk(group, "checkpoints.md", {})


def test_commands(group: Desk) -> None:
    """Programs that end, one that is ended, a task that is paused, a template."""

    def a_command(made: Desk) -> dict[str, str]:
        made.type("tenax command run -d --slots 0 'sleep 600'")
        return {"3f2a": made.first("id", "command", "list")[:8]}

    def a_task(made: Desk) -> dict[str, str]:
        code, said = made.type("tenax task create task.yaml --config 'entrypoint=sleep 600'")
        assert code == 0
        return {"5c1d": running(said)[:8]}

    walk(
        group,
        "commands.md",
        {
            "tenax command logs --follow 3f2a": Hint(
                put=lambda made: {"3f2a": made.first("id", "command", "list")[:8]}
            ),
            "tenax command kill 3f2a": Hint(put=a_command),
            "tenax task pause 5c1d": Hint(put=a_task),
        },
    )
    assert "evaluated" in group.said
    assert "worked" in group.said


def test_runs(group: Desk) -> None:
    walk(group, "runs.md", {})


def test_experiments(group: Desk) -> None:
    """Found, drawn, changed, acted upon, gone on with."""
    walk(
        group,
        "experiments.md",
        {
            # One that has not ended.
            "tenax experiment set priority 7 10": Hint(put=lambda _: {" 7 ": " 2 "}),
            "tenax experiment set max-slots 7 4": Hint(put=lambda _: {" 7 ": " 2 "}),
            # What was archived above goes on once it is there again.
            "tenax experiment continue 7 --config max_restarts=3": Hint(
                before=lambda made: made.tenax("experiment", "unarchive", "7")
            ),
            "tenax experiment cancel --label sweep --state QUEUED": Hint(answer=lambda _: "y"),
        },
    )
    assert (group.home / "curve.svg").read_text().startswith("<svg")


def test_coming_from_determined(group: Desk) -> None:
    walk(group, "migrate-from-determined.md", {})


def test_performance(group: Desk) -> None:
    walk(group, "performance.md", {})
    group.tenax("down", "--dir", str(group.home / "tmp" / "cluster"))


def test_the_page_about_the_web_page(group: Desk) -> None:
    walk(group, "web.md", {})


def test_the_sdk(group: Desk) -> None:
    """The scripts of its page: from the search to the files of the best checkpoint, and in an event loop."""
    search, in_a_loop = scripts("sdk.md")
    (group.home / "search.py").write_text(search)
    code, said = group.type("python search.py")
    assert code == 0, said
    assert list(group.home.glob("checkpoints/*/epoch.json"))
    (group.home / "in_a_loop.py").write_text(in_a_loop)
    code, said = group.type("python in_a_loop.py")
    assert code == 0, said
    assert "COMPLETED True" in said


def test_the_signature_of_a_webhook() -> None:
    """The lines of the page take a message as it is signed, and no other."""
    (script,) = scripts("access.md")
    lines = script.splitlines()
    for body, holds in ((b"{}", True), (b"{ }", False)):
        seconds = str(int(time.time()))
        names = {"hmac": hmac, "hashlib": hashlib, "time": time, "key": "k", "seconds": seconds, "body": body}
        names["signature"] = hmac.new(b"k", f"{seconds},".encode() + b"{}", hashlib.sha256).hexdigest()
        exec("\n".join(lines[:-1]), names)
        assert eval(lines[-1], names) is holds


def test_access(group: Desk, receiver: str) -> None:
    """Users, passwords, tokens, webhooks; the last page, for it takes the administrator's password away."""

    def ann(made: Desk) -> dict[str, str]:
        code, said = made.type(f"echo {PASSWORD} | tenax user create ann --password-stdin")
        assert code == 0, said
        return {"DET_PASS=...": f"DET_PASS={PASSWORD}"}

    def token(made: Desk) -> dict[str, str]:
        return {"=determined": "=ann", "tnxp_...": re.findall(r"tnxp_\S+", made.said)[-1]}

    def mine(made: Desk) -> dict[str, str]:
        return {"12": re.findall(r"\b(\d+)\b", made.type("tenax token list --csv")[1].splitlines()[1])[0]}

    to = Hint(put=lambda _: {"https://hooks.example": receiver})
    walk(
        group,
        "access.md",
        {
            "tenax user create eve --admin": Hint(answer=lambda _: PASSWORD),
            "tenax user change-password": Hint(answer=lambda _: PASSWORD),
            "export DET_MASTER=http://FIRST:8080 DET_USER=ann DET_PASS=...": Hint(put=ann),
            "tenax token create --expiration-days 7 --description nightly --with-current": Hint(
                answer=lambda _: PASSWORD
            ),
            "DET_USER=determined DET_USER_TOKEN=tnxp_... tenax e list": Hint(put=token),
            "tenax token revoke 12": Hint(put=mine),
            WEBHOOK: Hint(before=Desk.forget, put=to.put),
            "tenax webhook create asked https://hooks.example/T1 --on-alert": to,
        },
    )


def test_every_page_is_typed() -> None:
    """There is no page with commands that no test here walks."""
    walked = "".join(path.read_text() for path in Path(__file__).parent.glob("test_typed_*.py"))
    pages = {command.page for command in commands()} - {"CONTRIBUTING.md"}
    assert {page for page in pages if f'"{page}"' not in walked} == set()
