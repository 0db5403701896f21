"""A master for tests of the task side: a real HTTP server in a thread, with faults on demand.

It keeps what a task may ask of a master (spool, preemption, rendezvous, a few questions) and nothing else; of spools it
passes the kit of the real one (``tests/kits/intake_kit.py``).
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from tenax.wire.task_names import SEGMENTS, SPOOL_FORMATS
from tests.kits.ports import free_port

TOKEN = "v2.allocation.token"
ALLOCATION = "3.5e1f.1"

#: What a fault does to the next spool request.
STORE_THEN_RESET = "store, then reset"
RESET_THEN_STORE = "reset before storing"


class TaskMaster:
    def __init__(self) -> None:
        #: stream -> its records, by n.
        self.streams: dict[str, list[dict[str, object]]] = {}
        #: Lines that came again.
        self.duplicates = 0
        #: Method, path and query of every request.
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        #: path -> (status, body, headers), for everything but spool and preemption.
        self.answers: dict[str, tuple[int, object, dict[str, str]]] = {}
        self.bodies: dict[str, object] = {}
        #: Faults for the next spool requests, first in first out: a status, (status, headers), or a word from above.
        self.faults: list[object] = []
        #: A record -> (message, fatal), or None to store it.
        self.judge: Callable[[dict[str, object]], tuple[str, bool] | None] = lambda _: None
        #: At most so many lines are taken per request.
        self.most_lines: int | None = None
        self.preempt = threading.Event()
        self.polls = 0
        self.changed = threading.Condition()
        self._connections: set[socket.socket] = set()
        self._server: ThreadingHTTPServer | None = None
        # Kept while it is down, which no port of the system's own range is.
        self._port = free_port()
        self.up()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def up(self) -> None:
        """Listen (again, on the same port)."""
        self._server = _Server(self, self._port)
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def down(self) -> None:
        """Refuse connections, and cut those that are open: what a kill of the master looks like."""
        assert self._server is not None
        self._server.shutdown()
        self._server.server_close()
        for connection in list(self._connections):
            _reset(connection)

    def close(self) -> None:
        self.preempt.set()
        self.down()

    def records(self, kind: str | None = None) -> list[dict[str, object]]:
        """All records, by stream in the order of their beginning; of one kind."""
        return [
            record for records in self.streams.values() for record in records if kind is None or record["kind"] == kind
        ]

    def bodies_of(self, kind: str) -> list[dict[str, object]]:
        return [record["body"] for record in self.records(kind)]  # type: ignore[misc]

    def wait_for(self, happened: Callable[[], object], seconds: float = 240.0) -> None:
        """Wait until something that a request changes is so."""
        with self.changed:
            assert self.changed.wait_for(lambda: bool(happened()), seconds), "it did not happen"

    def take(self, stream: str, lines: list[bytes]) -> dict[str, object]:
        """Ingest, as the contract of the spool says."""
        records = self.streams.setdefault(stream, [])
        refused = []
        for line in lines[: self.most_lines]:
            record = json.loads(line)
            if record["n"] <= len(records):
                self.duplicates += 1
                continue
            if record["n"] > len(records) + 1:
                break
            verdict = self.judge(record)
            if verdict is not None:
                refused.append({"n": record["n"], "message": verdict[0], "fatal": verdict[1]})
                record = {**record, "kind": "refused"}
            records.append(record)
        return {"acked": len(records), "refused": refused}


@contextmanager
def running() -> Iterator[TaskMaster]:
    master = TaskMaster()
    try:
        yield master
    finally:
        master.close()


def environment(master: TaskMaster, run_dir: str, **extra: str) -> dict[str, str]:
    """The variables of a trial's container with one slot."""
    config = {
        "entrypoint": "python3 train.py",
        "checkpoint_storage": {"type": "directory", "container_path": f"{run_dir}/checkpoints", "save_trial_best": 1},
        "searcher": {"name": "single", "metric": "loss"},
        "resources": {"slots_per_trial": 1},
        "data": {"where": "here"},
    }
    return {
        "DET_MASTER": master.url,
        "DET_CLUSTER_ID": "cluster",
        "DET_AGENT_ID": "agent-1",
        "DET_SLOT_IDS": "[0]",
        "DET_TASK_ID": ALLOCATION.rpartition(".")[0],
        "DET_ALLOCATION_ID": ALLOCATION,
        "DET_SESSION_TOKEN": TOKEN,
        "DET_TASK_TYPE": "TRIAL",
        "DET_CONTAINER_ID": "container-1",
        SPOOL_FORMATS: SEGMENTS,
        "DET_RESOURCES_ID": "container-1",
        "DET_TRIAL_ID": "7",
        "DET_EXPERIMENT_ID": "3",
        "DET_TRIAL_SEED": "1234",
        "DET_TRIAL_RUN_ID": "1",
        "DET_STEPS_COMPLETED": "0",
        "DET_HPARAMS": '{"lr": 0.1, "nested": {"units": 3}}',
        "DET_EXPERIMENT_CONFIG": json.dumps(config),
        "DET_RUN_DIR": run_dir,
        **extra,
    }


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, master: TaskMaster, port: int) -> None:
        self.master = master
        super().__init__(("127.0.0.1", port), _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """A cut connection is no news."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    server: _Server

    def setup(self) -> None:
        super().setup()
        self.server.master._connections.add(self.connection)

    def finish(self) -> None:
        self.server.master._connections.discard(self.connection)
        super().finish()

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""

    def _serve(self) -> None:
        master = self.server.master
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.headers.get("Grpc-Metadata-x-allocation-token") != f"Bearer {TOKEN}":
            self._answer(401, {"error": {"code": 16, "reason": "Unauthenticated", "error": "invalid credentials"}})
            return
        with master.changed:
            master.requests.append((self.command, parts.path, query))
            master.changed.notify_all()
        if parts.path.endswith("/spool"):
            self._spool(query["stream"], body)
        elif parts.path.endswith("/signals/preemption"):
            with master.changed:
                master.polls += 1
                master.changed.notify_all()
            master.preempt.wait(float(query["timeout_seconds"]))
            self._answer(200, {"preempt": master.preempt.is_set()})
        else:
            if body:
                master.bodies[parts.path] = json.loads(body)
            missing = (404, {"error": {"code": 5, "reason": "NotFound", "error": f"{parts.path} not found"}}, {})
            status, document, headers = master.answers.get(parts.path, missing)
            self._answer(status, document, headers)

    do_GET = do_POST = do_PATCH = _serve

    def _spool(self, stream: str, body: bytes) -> None:
        master = self.server.master
        with master.changed:
            fault = master.faults.pop(0) if master.faults else None
            reply: dict[str, object] = {}
            if fault in (None, STORE_THEN_RESET):
                reply = master.take(stream, body.split(b"\n")[:-1])
            master.changed.notify_all()
        if fault in (STORE_THEN_RESET, RESET_THEN_STORE):
            _reset(self.connection)
            self.close_connection = True
        elif isinstance(fault, tuple):
            self._answer(fault[0], {"message": "not now"}, fault[1])
        elif isinstance(fault, int):
            self._answer(fault, {"message": "not now"})
        else:
            self._answer(200, reply)

    def _answer(self, status: int, document: object, headers: dict[str, str] | None = None) -> None:
        content = json.dumps(document).encode()
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
        self.wfile.flush()


def _reset(connection: socket.socket) -> None:
    """Cut a connection the hard way."""
    try:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
