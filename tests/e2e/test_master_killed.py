"""``kill -9`` of the master in the middle of what only it does: telling webhooks, hearing of what trains elsewhere."""

from __future__ import annotations

import http.client
import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tenax.jsonvalue import JsonObject
from tests.kits.machine import Machine, machine, pick, wait_for

pytestmark = pytest.mark.timeout(600)
CONFIG = "name: far\nsearcher: {name: single, metric: score}\n"


@pytest.fixture(scope="module")
def place() -> Iterator[Machine]:
    """Its webhooks may lead to this machine."""
    with machine(environment={"TENAX_MASTER_WEBHOOKS__ALLOWED_NETWORKS": "[127.0.0.0/8]"}) as up:
        yield up


def ask(place: Machine, method: str, path: str, body: JsonObject | None = None) -> JsonObject:
    """As a script of its user does: again while the master is away, and at once when it is not."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(place.url + path, data, method=method)
    request.add_header("Authorization", f"Bearer {place.token()}")
    # A busy machine takes most of a minute to start a master.
    until = time.monotonic() + 240
    while True:
        try:
            with urllib.request.urlopen(request, timeout=60) as reply:
                found: JsonObject = json.loads(reply.read() or b"{}")
                return found
        except urllib.error.HTTPError as error:
            if error.code != 503 or time.monotonic() > until:
                raise AssertionError(f"{method} {path}: {error.code} {error.read().decode()}") from None
        # Killed before its answer, or in the middle of it.
        except (OSError, http.client.HTTPException):
            if time.monotonic() > until:
                raise
        time.sleep(0.05)


def trial(place: Machine, config: str = CONFIG) -> tuple[int, int, int]:
    """An experiment that trains elsewhere, its trial, and the number of the run that has begun."""
    made = ask(place, "POST", "/api/v1/experiments", {"config": config, "unmanaged": True})["experiment"]
    assert isinstance(made, dict)
    number = made["id"]
    assert isinstance(number, int)
    one = ask(place, "PUT", "/api/v1/trials", wish(number))["trial"]
    assert isinstance(one, dict)
    identity = one["id"]
    assert isinstance(identity, int)
    run = ask(place, "POST", f"/api/v1/trials/{identity}/start", {})["trialRunId"]
    assert isinstance(run, int)
    return number, identity, run


def wish(experiment: int) -> JsonObject:
    asked: JsonObject = {"experimentId": experiment, "hparams": {}, "unmanaged": True}
    return {"createTrialRequest": asked, "externalTrialId": f"t{experiment}"}


class Receiver:
    """Takes messages; holds the first until it is told to go on."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.go_on = threading.Event()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                event = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                receiver.ids.append(event["event_id"])
                receiver.go_on.wait(60)
                try:
                    self.send_response(200)
                    self.end_headers()
                except OSError:
                    # Who asked is not there any more.
                    self.close_connection = True

            def log_message(self, format: str, *args: object) -> None:
                """Nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}/"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.go_on.set()
    made.server.shutdown()
    made.server.server_close()


def test_a_message_whose_master_is_killed_while_it_sends_arrives_and_then_no_more(
    place: Machine, receiver: Receiver
) -> None:
    """The receiver has it already, and nobody knows: it comes once more under the same id, and is done with."""
    hook: JsonObject = {
        "name": "killed",
        "url": receiver.url,
        "webhookType": "WEBHOOK_TYPE_DEFAULT",
        "mode": "WEBHOOK_MODE_SPECIFIC",
        "triggers": [{"triggerType": "TRIGGER_TYPE_CUSTOM"}],
    }
    made = ask(place, "POST", "/api/v1/webhooks", hook)["webhook"]
    assert isinstance(made, dict)
    experiment, *_ = trial(place, CONFIG + "integrations: {webhooks: {webhook_name: [killed]}}\n")
    ask(place, "POST", "/api/v1/webhooks/custom", {"experimentId": experiment, "data": {"title": "look"}})
    wait_for(lambda: receiver.ids, "the message")
    place.kill("master")
    receiver.go_on.set()

    def ended() -> JsonObject | None:
        deliveries = ask(place, "GET", f"/api/v1/webhooks/{made['id']}/deliveries")["deliveries"]
        assert isinstance(deliveries, list)
        [one] = deliveries
        assert isinstance(one, dict)
        return one if one["state"] != "WAITING" else None

    told = wait_for(ended, "the end of the delivery")
    assert (told["state"], told["attempts"]) == ("DELIVERED", 2)
    assert receiver.ids == [told["eventId"]] * 2


def test_a_script_elsewhere_outlasts_kills_of_the_master(place: Machine) -> None:
    """It repeats what was not answered: one trial, each report once, and the end that it told."""
    steps = 30
    # While somebody answers: it is asked for once.
    place.token()
    ids: list[tuple[int, int, int]] = []
    broken: list[BaseException] = []

    def script() -> None:
        try:
            ids.append(trial(place))
            experiment, number, run = ids[0]
            for step in range(1, steps + 1):
                report: JsonObject = {"trialId": number, "trialRunId": run, "stepsCompleted": step}
                values: JsonObject = {"avgMetrics": {"score": float(step)}}
                body: JsonObject = {"group": "validation", "metrics": {**report, "metrics": values}}
                ask(place, "POST", f"/api/v1/trials/{number}/metrics", body)
                ask(place, "PUT", "/api/v1/trials", wish(experiment))
                ask(place, "PATCH", f"/api/v1/trials/{number}", {})
            ask(place, "PATCH", f"/api/v1/trials/{number}", {"state": "STATE_COMPLETED"})
        except BaseException as error:
            broken.append(error)

    thread = threading.Thread(target=script)
    thread.start()
    for seed in range(2):
        time.sleep(pick(seed, 0.1, 0.6))
        place.kill("master")
        wait_for(place.answers, "the master again")
    thread.join(240)
    assert not broken, broken
    assert not thread.is_alive()
    [(experiment, number, _)] = ids
    shown = ask(place, "GET", f"/api/v1/experiments/{experiment}")["experiment"]
    assert isinstance(shown, dict)
    assert (shown["state"], shown["numTrials"]) == ("STATE_COMPLETED", 1)
    workloads = ask(place, "GET", f"/api/v1/trials/{number}/workloads?limit=1000")["workloads"]
    assert isinstance(workloads, list)
    assert len(workloads) == steps
