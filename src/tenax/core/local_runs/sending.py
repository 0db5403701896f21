"""A run by hand on its way to a cluster, while it runs or any time later. Standard library only, Python 3.9.

It becomes a trial of an unmanaged experiment. Rules it keeps:

- All of it may be done again from anywhere: experiment and trial are made under the run's own key, lines of spools have
  numbers and output has offsets, and where to go on is the master's word. ``sent.json`` only saves the asking.
- A run that goes on from another one is the next run of the same trial, and goes after it.
- The end of the trial is told when everything else is there.
- Checkpoints are reported where they lie; their files stay on this machine.
- What ranks the trial is what it was made with until the first validation: where that has no such metric, it is the one
  that a run sent as a whole would have had, and the master hears it before the values.
"""

from __future__ import annotations

import os
import shlex
import time
import zlib

from tenax.client.connection.session import Query, Session, at
from tenax.core.local_runs.files import OUTPUTS, LocalRun, local_runs, sending
from tenax.core.local_runs.reading import (
    RunStory,
    is_better_when_smaller,
    main_of,
    startable,
    state_of,
    times_of,
    trial_of,
)
from tenax.errors import InvalidInput, NotFound, NotNow
from tenax.wire.logs import CHUNK_BYTES
from tenax.wire.spool_names import BATCH_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Dict

    from tenax.jsonvalue import Json, JsonObject

#: Refusals that are said, of each stream.
_MAX_REFUSALS = 3


class SentElsewhere(NotNow):
    """The run was sent to another cluster."""


class RunSender:
    """Sends one run to the master of a session. Not thread-safe; whoever has one holds `files.sending`.

    Methods raise the errors of a session.
    """

    def __init__(self, run: LocalRun, session: Session, say: Callable[[str], None]) -> None:
        self._run = run
        self._session = session
        self._say = say
        self._sent: JsonObject = {}
        self._trial = self._run_id = 0
        self._positions: Dict[str, tuple[int, int]] = {}
        self._output: Dict[str, int] = {}
        self._broken: set[str] = set()
        #: Whether what may be older than this process's knowledge was asked for.
        self._compared: set[str] = set()

    @property
    def trial(self) -> int:
        """Its number at the cluster; 0 before `connect`."""
        return self._trial

    @property
    def experiment(self) -> int:
        return _integer(self._sent.get("experimentId"))

    def connect(self, ancestors: bool = True) -> None:
        """Let there be an experiment, a trial and a run; after what this run goes on from. Raises SentElsewhere."""
        cluster = cluster_of(self._session)
        sent = self._run.sent
        if is_sent_elsewhere(self._run, cluster):
            raise SentElsewhere(
                f"{self._run.name} was sent to the cluster at {sent.get('master')}, and this is {self._session.url}: "
                "tenax sync --anew sends it to this one as well"
            )
        if ancestors:
            self._send_ancestors()
        if not sent.get("runId"):
            sent = self._register(cluster)
        self._sent = sent
        self._trial, self._run_id = _integer(sent.get("trialId")), _integer(sent.get("runId"))

    def send_new(self) -> bool:
        """Send what is new in the files; whether anything was."""
        moved = False
        for name in self._run.streams():
            while name not in self._broken and self._send_lines(name):
                moved = True
        for name in OUTPUTS:
            while self._send_output(name, final=False):
                moved = True
        if moved:
            self._note()
        return moved

    def alive(self) -> None:
        """A sign of life. Raises NotNow where somebody has ended the trial at the cluster."""
        self._patch({})

    def finish(self) -> None:
        """It is over, and everything is there: say how it ended."""
        for name in OUTPUTS:
            self._send_output(name, final=True)
        state, reason = state_of(self._run)
        try:
            self._patch({"state": f"STATE_{state}", "reason": reason[:500], **self._times()})
        except (InvalidInput, NotNow) as error:
            self._say(f"trial {self._trial} keeps the end that it has at the cluster: {error}")
        self._sent["done"] = True
        self._note()

    def _times(self) -> JsonObject:
        """When it was, for the master: by how long ago, since its clock may be another; and how long its runs took."""
        now, (began, ended) = time.time(), times_of(self._run)
        if not began:
            return {}
        trial = trial_of(self._run.card)
        others = [times_of(run) for run in local_runs() if trial and trial_of(run.card) == trial]
        ran = sum(until - since for since, until in others if since < began) + ended - began
        first = min([began, *(since for since, _ in others if since)])
        return {
            "beganSecondsAgo": max(0.0, now - first),
            "endedSecondsAgo": max(0.0, now - ended),
            "ranSeconds": max(0.0, ran),
        }

    def _register(self, cluster: str) -> JsonObject:
        card, story = self._run.card, RunStory(self._run)
        key = str(card.get("trialKey") or f"local-{self._run.name}")
        experiment_key = str(card.get("experimentKey") or key)
        name = str(card.get("name") or script_name(card) or self._run.name)
        metric, smaller = chosen_metric(card, story.names())
        body: JsonObject = {"config": _config(name, card, metric, smaller), "unmanaged": True}
        project = card.get("project")
        if isinstance(project, str) and project:
            body["projectId"] = _project(self._session, project)
        made_of = self._session.call("PUT", at("/api/v1/experiments/by-external-id/{}", experiment_key), body=body)
        experiment = _integer(_object(made_of.get("experiment")).get("id"))
        hparams = story.hparams or _object(card.get("hparams"))
        request: JsonObject = {"experimentId": experiment, "hparams": hparams, "unmanaged": True}
        made = self._session.call("PUT", "/api/v1/trials", body={"createTrialRequest": request, "externalTrialId": key})
        trial = _integer(_object(made.get("trial")).get("id"))
        started = self._session.call("POST", f"/api/v1/trials/{trial}/start", body={"resume": True})
        sent: JsonObject = {
            "v": 1,
            "master": self._session.url,
            "clusterId": cluster,
            "experimentId": experiment,
            "trialId": trial,
            "runId": _integer(started.get("trialRunId")),
            "latestCheckpoint": started.get("latestCheckpoint") or None,
            "stepsCompleted": _integer(started.get("stepsCompleted")),
            "metric": _object(_object(made_of.get("config")).get("searcher")).get("metric"),
            "done": False,
        }
        self._run.write_sent(sent)
        self._session.call("POST", f"/api/v1/runs/{trial}/metadata", body={"metadata": _metadata(self._run, card)})
        return sent

    def _send_ancestors(self) -> None:
        """What came before in the same trial has the earlier runs of it."""
        card = self._run.card
        trial, started = trial_of(card), card.get("started")
        for run in local_runs() if trial and card.get("resumedFrom") else []:
            other = run.card
            before = isinstance(started, (int, float)) and _number(other.get("started")) < started
            if run.path == self._run.path or trial_of(other) != trial or not before or run.sent.get("done"):
                continue
            with sending(run) as alone:
                if alone:
                    send_whole(run, self._session, self._say, ancestors=False)

    def _send_lines(self, name: str) -> bool:
        """Send the next lines of a stream; False: there are none."""
        n, offset = self._position(name)
        first, data = _whole_lines(self._run.stream_path(name), offset)
        asks = name not in self._compared
        if not data and not asks:
            return False
        if data and first != n + 1:
            self._say(f"the reports in {self._run.stream_path(name)} are not sent: line {first} comes after line {n}")
            self._broken.add(name)
            return False
        self._rank_by(data)
        target = f"/api/v1/trials/{self._trial}/runs/{self._run_id}/spool"
        answer = self._session.ship(target, {"stream": name}, b"" if asks else data)
        self._compared.add(name)
        acked = _integer(answer.get("acked"))
        self._say_refusals(answer)
        self._positions[name] = _after(self._run.stream_path(name), acked, (n, offset))
        return asks or acked != n

    def _rank_by(self, data: bytes) -> None:
        """Let the first validation among these lines choose what ranks the trial, where nobody else has chosen."""
        known = self._sent.get("metric")
        if not isinstance(known, str) or b'"validation"' not in data:
            return
        story = RunStory()
        story.read(data.splitlines(keepends=True))
        metrics = story.names().get("validation")
        if not metrics:
            return
        metric, smaller = chosen_metric(self._run.card, {"validation": metrics})
        if known not in metrics and metric != known:
            searcher: JsonObject = {"metric": metric, "smallerIsBetter": smaller}
            try:
                self._session.call("PATCH", f"/api/v1/experiments/{self.experiment}", body={"searcher": searcher})
            except (InvalidInput, NotNow) as error:
                self._say(f"experiment {self.experiment} is not ranked by {metric!r}: {error}")
        self._sent["metric"] = None

    def _position(self, name: str) -> tuple[int, int]:
        if name not in self._positions:
            known = _object(_object(self._sent.get("streams")).get(name))
            self._positions[name] = _integer(known.get("n")), _integer(known.get("offset"))
        return self._positions[name]

    def _send_output(self, name: str, *, final: bool) -> bool:
        """Send the next piece of the output; False: there is none."""
        path = self._run.output_path(name)
        try:
            size, age = os.path.getsize(path), time.time() - os.path.getmtime(path)
        except OSError:
            return False
        offset = self._output.get(name, 0)
        asks = name not in self._compared
        if offset >= size and not asks and not final:
            return False
        piece = b"" if asks else _piece(path, offset)
        ends = final and not asks and offset + len(piece) >= size
        query: Query = {
            "stream": name,
            "offset": offset,
            "host": os.uname().nodename,
            "age_ms": int(max(0.0, age) * 1000),
            "final": ends,
        }
        target = f"/api/v1/trials/{self._trial}/runs/{self._run_id}/output"
        answer = self._session.ship(target, query, zlib.compress(piece))
        self._compared.add(name)
        following = _integer(answer.get("next"))
        self._output[name] = following
        return (asks and following < size) or following != offset

    def _patch(self, body: JsonObject) -> None:
        self._session.call("PATCH", f"/api/v1/trials/{self._trial}", body={"trialId": self._trial, **body})

    def _say_refusals(self, answer: JsonObject) -> None:
        refused = answer.get("refused")
        for refusal in (refused if isinstance(refused, list) else [])[:_MAX_REFUSALS]:
            self._say(f"the master refused a report: {_object(refusal).get('message')}")

    def _note(self) -> None:
        streams: JsonObject = {name: {"n": n, "offset": offset} for name, (n, offset) in self._positions.items()}
        self._sent["streams"] = {**_object(self._sent.get("streams")), **streams}
        self._run.write_sent(self._sent)


def send_whole(run: LocalRun, session: Session, say: Callable[[str], None], *, ancestors: bool = True) -> RunSender:
    """Send all that there is of a run, and how it ended unless it goes on. Raises the errors of a session."""
    sender = RunSender(run, session, say)
    sender.connect(ancestors)
    while sender.send_new():
        pass
    if not run.is_alive():
        sender.finish()
    return sender


def _project(session: Session, name: str) -> int:
    """Its number. Raises NotFound, with what to type to have it."""
    from tenax.client.projects import get_project
    from tenax.client.workspaces import get_workspace

    workspace, _, project = name.partition("/")
    make = f"tenax project create {shlex.join([workspace, project])}"
    try:
        if project:
            try:
                get_workspace(session, workspace)
            except NotFound:
                make = f"tenax workspace create {shlex.quote(workspace)} && {make}"
                raise
        return get_project(session, name).id
    except NotFound as error:
        raise NotFound(f"{error} To make it: {make}" if project else str(error)) from None


def cluster_of(session: Session) -> str:
    """The id of the cluster that a session is of. Raises the errors of a session."""
    return str(session.get_anonymously("/info").get("cluster_id", ""))


def is_sent_elsewhere(run: LocalRun, cluster: str) -> bool:
    """Whether another cluster than this one has any of it."""
    return run.sent.get("clusterId") not in (None, cluster)


def is_sent(run: LocalRun) -> bool:
    """Whether a cluster has all of a run that has ended, as far as is known here."""
    return bool(run.sent.get("done"))


def _whole_lines(path: str, offset: int) -> tuple[int, bytes]:
    """The number of the first line from a byte on, and the whole lines that make one request."""
    size = BATCH_BYTES
    while True:
        try:
            with open(path, "rb") as file:
                file.seek(offset)
                data = file.read(size)
        except OSError:
            return 0, b""
        # A line that is longer than a request goes alone.
        end = (data.rfind(b"\n") if size == BATCH_BYTES else data.find(b"\n")) + 1
        if end or len(data) < size:
            return _number_of(data[:end]), data[:end]
        size *= 2


def _number_of(data: bytes) -> int:
    """``{"n":7,...`` -> 7; 0 where there is none."""
    head, _, rest = data[:64].partition(b":")
    digits = rest.partition(b",")[0].strip()
    return int(digits) if head.strip() == b'{"n"' and digits.isdigit() else 0


def _after(path: str, n: int, known: tuple[int, int]) -> tuple[int, int]:
    """Where line ``n`` ends, counted from what is known, or from the beginning."""
    at_n, offset = known if known[0] <= n else (0, 0)
    try:
        with open(path, "rb") as file:
            file.seek(offset)
            while at_n < n:
                line = file.readline()
                if not line.endswith(b"\n"):
                    break
                at_n, offset = at_n + 1, offset + len(line)
    except OSError:
        pass
    return at_n, offset


def _piece(path: str, offset: int) -> bytes:
    try:
        with open(path, "rb") as file:
            file.seek(offset)
            return file.read(CHUNK_BYTES)
    except OSError:
        return b""


def _config(name: str, card: JsonObject, metric: str, smaller: bool) -> str:
    """The configuration of the experiment: JSON is YAML."""
    import json

    config: JsonObject = {
        "name": name,
        "searcher": {"name": "single", "metric": metric, "smaller_is_better": smaller},
        "entrypoint": card.get("argv") or ["unknown"],
        **{key: card[key] for key in ("description", "labels", "data") if card.get(key)},
    }
    return json.dumps(config)


def chosen_metric(card: JsonObject, names: Mapping[str, Sequence[str]]) -> tuple[str, bool]:
    """What ranks it, and whether less of it is better: what was said, else what was reported, else what is usual.

    ``names``: of metrics, by group.
    """
    given = card.get("metric")
    metric = given if isinstance(given, str) and given else main_of(names.get("validation", []))
    direction = card.get("smallerIsBetter")
    return metric, direction if isinstance(direction, bool) else is_better_when_smaller(metric)


def _metadata(run: LocalRun, card: JsonObject) -> JsonObject:
    """What is known of a run by hand, for people who look for it."""
    about = ("host", "python", "commit", "cwd")
    known: JsonObject = {name: card[name] for name in about if card.get(name)}
    started = _number(card.get("started"))
    if started:
        known["started"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started))
    return {"local_run": {"name": run.name, **known}}


def script_name(card: JsonObject) -> str:
    """The script of a run, for people."""
    names = startable(card)
    # A script may come after its launcher; what comes after a script are its arguments.
    script = next((name for name in names if name.endswith((".py", ".sh"))), names[0] if names else "")
    return os.path.basename(script)


def _object(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _integer(value: Json) -> int:
    return int(value) if isinstance(value, (int, float, str)) and str(value).isdigit() else 0


def _number(value: Json) -> float:
    return float(value) if isinstance(value, (int, float)) else 0.0
