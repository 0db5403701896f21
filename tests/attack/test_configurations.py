"""Configurations whose reading costs more than their length: in a thread, but each thread holds up all others."""

from __future__ import annotations

import asyncio
import base64
import difflib
import json
import random
import threading

import pytest

from tenax.config.problems import MAX_NOTICES, MAX_PROBLEMS, ConfigError, Problem
from tenax.config.resolve import Layers, Wishes, parse_experiment, wishes_of, written_secrets
from tenax.config.schema.pod_spec import POD_SPEC
from tenax.config.text import read_object
from tenax.errors import InvalidInput
from tenax.jsonvalue import Json, JsonObject
from tenax.master.api.changes.routes import _subscription
from tenax.master.submission import experiments as submitted
from tests.kits.api import Api
from tests.kits.master.experiments import CONFIG
from tests.kits.watchdog import watched

THOUSANDS = 3_000


@pytest.mark.parametrize(
    "more",
    [
        "data: 1\n" * THOUSANDS,
        "".join(f"enviromnent{n}: 1\n" for n in range(THOUSANDS)),
        "environment: {environment_variables: [" + ", ".join(f'"=1{n}"' for n in range(THOUSANDS)) + "]}\n",
        "bind_mounts: [" + ", ".join("{host_path: 1}" for n in range(THOUSANDS)) + "]\n",
        "log_policies: [" + ", ".join(f"{{name: {n}, action: {n}x}}" for n in range(THOUSANDS)) + "]\n",
        "log_policies: [{action: {" + ", ".join(f"a{n}: 1" for n in range(THOUSANDS)) + "}}]\n",
    ],
    ids=["given twice", "unknown", "variables", "mounts", "policies", "keys of an action"],
)
async def test_thousands_of_problems(api: Api, more: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first hundred are told, none is compared with all others, and nothing is looked up for those left out."""
    compared, looked_up = 0, 0
    same, near = Problem.__eq__, difflib.get_close_matches

    def counted(self: Problem, other: object) -> bool:
        nonlocal compared
        compared += 1
        return same(self, other)

    def counted_too(*args: object, **more: object) -> list[str]:
        nonlocal looked_up
        looked_up += 1
        return near(*args, **more)  # type: ignore[call-overload, no-any-return]  # as it was called

    monkeypatch.setattr(Problem, "__eq__", counted)
    monkeypatch.setattr(difflib, "get_close_matches", counted_too)
    body: Json = {"config": f"{CONFIG}\n{more}", "validateOnly": True}
    reply = await api.user.post("/api/v1/experiments", body)
    assert reply.status_code == 400, reply.text[:300]
    assert "more than 100 problems" in reply.text
    assert "and more" in reply.text
    assert compared <= 4 * MAX_PROBLEMS
    assert looked_up <= 4 * MAX_PROBLEMS


def test_what_is_left_out_is_not_legal() -> None:
    """Beyond the last problem that is told nothing passes a check, so that what builds on it is not tried."""
    mounts = ", ".join("{host_path: a, container_path: b}" for _ in range(MAX_PROBLEMS + 5))
    text = f"{CONFIG}\nbogus: 1\nbind_mounts: [{mounts}]\ndebug: 3\nlog_policies: [1, {{name: a}}, {{name: a}}]\n"
    with pytest.raises(ConfigError) as caught:
        parse_experiment(text, rng=random.Random(1), layers=Layers())
    assert len(caught.value.problems) == MAX_PROBLEMS
    assert str(caught.value).endswith("and more: mend these first")


def test_thousands_of_notices() -> None:
    """As many are told."""
    lists = ", ".join(f"h{n}: [{{type: int, minval: 0, maxval: 9}}]" for n in range(MAX_NOTICES + 20))
    text = CONFIG.replace("hyperparameters:", f"data: {{}}\nhyperparameters: {{{lists}}}\nx_hyperparameters:")
    config = {**read_object(text)[0], "checkpoint_storage": {"type": "shared_fs", "host_path": "/x"}}
    config.pop("x_hyperparameters")
    notices = parse_experiment(config, rng=random.Random(1), layers=Layers()).notices
    assert (len(notices), notices[-1]) == (MAX_NOTICES + 1, "and more of this kind")


@pytest.mark.parametrize("text", ["data: {<<: [%s]}", "data: {%s}"])
async def test_thousands_of_merge_keys(text: str) -> None:
    """What is merged is not copied again with each: the watchdog counts the time of what holds the loop."""
    many = ", ".join(f"{'' if '[' in text else '<<: '}{{k{n}: {n}}}" for n in range(4000))

    async def reading() -> int:
        data = read_object(text % many)[0]["data"]
        assert isinstance(data, dict)
        return len(data)

    with watched("a configuration"):
        assert await asyncio.create_task(reading()) == 4000


async def test_thousands_of_items_with_names() -> None:
    """Nor is each item of a pod's lists looked for among all others."""
    high: Json = {"spec": {"volumes": [{"name": f"v{n}"} for n in range(6000)]}}
    low: Json = {"spec": {"volumes": [{"name": "v5999", "x": 1}, {"x": 2}, {"name": ["v"]}]}}

    async def merging() -> Json:
        return POD_SPEC.merge(high, low)

    with watched("a pod"):
        merged = await asyncio.create_task(merging())
    assert isinstance(merged, dict)
    volumes = merged["spec"]["volumes"]  # type: ignore[index, call-overload]
    assert volumes[:3] == [{"name": "v5999", "x": 1}, {"x": 2}, {"name": ["v"]}]  # type: ignore[index]
    assert len(volumes) == 6002  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "number",
    [
        "0xf" + "f" * 6000,
        "0o7" + "7" * 9000,
        "9" * 6000,
        "!!int " + "9_" * 2000 + "9",
        "0x10000000000000000",
        "-" + "9" * 20,
    ],
    ids=["hex", "octal", "decimal", "underscores", "65 bits", "negative"],
)
@pytest.mark.parametrize(
    "place", ["name: %s", "data: {a: %s}", "hyperparameters: {a: %s}", "resources: {priority: %s}"]
)
async def test_numbers_of_thousands_of_digits(api: Api, place: str, number: str) -> None:
    """Refused where they stand; nothing tries to print them."""
    searcher = "{name: random, metric: loss, max_trials: 1}"
    body: Json = {"config": f"{place % number}\nsearcher: {searcher}\nentrypoint: x\n", "validateOnly": True}
    reply = await api.user.post("/api/v1/experiments", body)
    assert (reply.status_code, "64 bits" in reply.text, "line 1" in reply.text) == (400, True, True), reply.text[:300]
    assert len(reply.text) < 1000


async def test_a_grid_of_thousands_of_axes(api: Api) -> None:
    """How many points it has is not multiplied out, since nobody could print that either."""
    axes = ", ".join(f"a{n}: {{type: int, minval: 0, maxval: 99, count: 100}}" for n in range(4000))
    config = f"hyperparameters: {{{axes}}}\nsearcher: {{name: grid, metric: loss}}\nentrypoint: x\n"
    reply = await api.user.post("/api/v1/experiments", {"config": config, "validateOnly": True})
    assert (reply.status_code, "or more points" in reply.text) == (400, True), reply.text[:300]


@pytest.mark.parametrize(
    ("spec", "known"), [({"model_ids": [True]}, ""), ({"since": 10**400}, ""), ({"model_ids": [1]}, "9" * 5000)]
)
def test_a_subscription_of_what_is_no_id(spec: Json, known: str) -> None:
    """Told to the client; the connection broke with a traceback in the master's log."""
    with pytest.raises(InvalidInput):
        _subscription(json.dumps({"sync_id": "a", "subscribe": {"models": spec}, "known": {"models": known}}))


async def test_many_at_once_wait_for_each_other(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """One person's heavy configurations are read one after the other, and nobody else's waits for them."""
    go_on, begun, loop = threading.Event(), asyncio.Event(), asyncio.get_running_loop()
    at_once, most = 0, 0

    def slowly(config: str | JsonObject, *, template: str | JsonObject | None = None) -> Wishes:
        nonlocal at_once, most
        if "heavy" in config:
            at_once += 1
            most = max(most, at_once)
            loop.call_soon_threadsafe(begun.set)
            assert go_on.wait(30)
            at_once -= 1
        return wishes_of(config, template=template)

    monkeypatch.setattr(submitted, "wishes_of", slowly)
    # With code that goes to a file: how many of those are worked on has a bound of its own.
    code: Json = [{"path": "a.py", "type": 48, "mode": 0o644, "content": base64.b64encode(bytes(300_000)).decode()}]
    bodies: list[Json] = [
        {"config": f"{CONFIG}\ndata: {{{name}: 1}}\n", "modelDefinition": code, "validateOnly": True}
        for name in ("heavy", "light")
    ]
    try:
        asked = [asyncio.create_task(api.user.post("/api/v1/experiments", bodies[0])) for _ in range(6)]
        async with asyncio.timeout(240):
            await begun.wait()
            reply = await api.admin.post("/api/v1/experiments", bodies[1])
            reply_to_list = await api.admin.get("/api/v1/experiments")
    finally:
        go_on.set()
    assert (reply.status_code, reply_to_list.status_code) == (200, 200), reply.text[:300]
    assert {each.status_code for each in await asyncio.gather(*asked)} == {200}
    assert most == 1


async def test_what_is_heavy_to_read_is_read_in_a_thread(api: Api) -> None:
    """Also for whoever is shown what they wrote: the watchdog counts the time of what holds the loop."""
    config = f"{CONFIG}\ndata: {{a: [{'1,' * 40_000}]}}\n"
    reply = await api.user.post("/api/v1/experiments", {"config": config, "activate": False})
    assert reply.status_code == 200, reply.text[:300]
    number = reply.json()["experiment"]["id"]
    written_secrets.cache_clear()
    assert (await api.user.get(f"/api/v1/experiments/{number}")).status_code == 200
    written_secrets.cache_clear()
    assert (await api.user.patch(f"/api/v1/experiments/{number}", {"name": "other"})).status_code == 200


@pytest.mark.parametrize(("trials", "constants"), [(400, 3000), (100_000, 0)])
async def test_a_search_that_begins_with_millions_of_values(api: Api, trials: int, constants: int) -> None:
    """All are written before the submission is answered: it is refused, with what to do."""
    more = "".join(f"  c{n}: {n}\n" for n in range(constants))
    searcher = f"max_trials: {trials}, max_concurrent_trials: 0"
    config = CONFIG.replace("max_trials: 8", searcher).replace("hyperparameters:\n", f"hyperparameters:\n{more}")
    reply = await api.user.post("/api/v1/experiments", {"config": config, "validateOnly": True})
    assert (reply.status_code, "max_concurrent_trials" in reply.text) == (400, True), reply.text[:300]
    fewer = config.replace("max_concurrent_trials: 0", "max_concurrent_trials: 100")
    reply = await api.user.post("/api/v1/experiments", {"config": fewer, "validateOnly": True})
    assert reply.status_code == 200, reply.text[:300]
