"""What holds for every route, whatever it does: policies, spellings, error bodies, the published contract."""

from __future__ import annotations

import inspect
import json
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, islice, product

import pytest
from fastapi.routing import APIRoute, APIWebSocketRoute

from tenax.master.access.authorization import Allow
from tenax.master.api.http import openapi
from tenax.master.api.http.edge import to_snake
from tenax.master.api.http.routing import Declared, Routes, allowed
from tenax.master.app import ROUTES, create_app
from tenax.master.observability import counters
from tests.kits.api import Api, Client, bearer
from tests.master.api.authorization import POLICIES

DECLARED = [route for noun in ROUTES for route in noun.declared]

#: Whom a policy lets in, of those who have no token of a task or an agent.
MAY = {
    Allow.PUBLIC: {Allow.PUBLIC, Allow.USER, Allow.ADMIN},
    Allow.USER: {Allow.USER, Allow.ADMIN},
    Allow.ADMIN: {Allow.ADMIN},
    Allow.TASK: set(),
    Allow.REPORTER: {Allow.USER, Allow.ADMIN},
    Allow.AGENT: set(),
}
MALFORMED = (
    *(b"{", b"[]", b"null", b'"x"', b"\xff\xfe", b'{"a":"\\u0000"}', b'{"a":"\\ud800"}', b"[" * 100_000, b"1e400"),
    *(b'{"user":3,"config":7,"username":[]}', b'{"username":"x","password":{},"limit":"x","isHashed":"perhaps"}'),
)
STRANGE_NAMES = ("1", "-1", "0", "9" * 40, "1e3", "%F0%9F%98%80", "a%2Fb", "%00", "..", "' or 1=1 --")
STRANGE_QUERIES = ("", "?limit=x&offset=-9&sortBy=&states=NO&trialIds=x&follow=2&userIds=a", "?limit=-3&%00=1")


def _path(route: Declared) -> str:
    return route.path.replace("{", "").replace("}", "").replace(":path", "")


def test_every_route_of_the_application_has_a_policy(api: Api) -> None:
    """Nothing is served that was not declared with one."""
    for route in api.app.routes:
        assert isinstance(route, APIRoute | APIWebSocketRoute), f"{route} was not declared"
        assert allowed(route.endpoint) is not None, f"{route.path} has no policy"


def test_the_policies_are_the_table(api: Api) -> None:
    """Who may call what is written down twice: in the declaration and in the table; they agree."""
    assert {route.operation: route.allow for route in DECLARED} == POLICIES


def test_operations_and_results_are_stable_names() -> None:
    """Each operation id stands once; each handler says what it gives back."""
    names = [route.operation for route in DECLARED]
    assert len(names) == len(set(names))
    for route in DECLARED:
        annotated = inspect.signature(route.handler).return_annotation is not inspect.Signature.empty
        assert annotated or "response_model" in route.options, route.operation


async def test_a_route_is_read_when_it_is_first_asked_for(api: Api) -> None:
    """A master that starts reads none of its three hundred: whoever asks waits for one, and the contract for all."""
    app = create_app(api.master)

    def read() -> set[str]:
        return {route.path for route in app.routes if isinstance(route, APIRoute) and "dependant" in vars(route)}

    assert read() == set()
    client = Client(app, {"Authorization": f"Bearer {bearer(api.user)}"})
    assert (await client.get("/api/v1/me")).status_code == 200
    assert (await client.post("/api/v1/me")).status_code == 405
    await client.close()
    assert read() == {"/api/v1/me"}
    assert openapi.encoded(app) == openapi.encoded(api.app)
    assert read() == {route.path for route in app.routes if isinstance(route, APIRoute)}


async def test_routes_that_several_read_at_once_are_read_once(api: Api) -> None:
    """Pages that come back to a master that has just started ask for the contract together, in threads."""
    routes = [route for route in create_app(api.master).routes if isinstance(route, APIRoute)]
    together = threading.Barrier(4)

    def read() -> list[int]:
        together.wait()
        return [id(route.dependant) for route in routes]

    with ThreadPoolExecutor(4) as threads:
        seen = [reading.result() for reading in [threads.submit(read) for _ in range(4)]]
    assert all(ids == seen[0] for ids in seen)


async def test_a_route_without_a_policy_is_refused_to_administrators_too(api: Api) -> None:
    """Default deny, at run time."""
    app = create_app(api.master)

    async def forgotten() -> dict[str, str]:
        return {"secret": "x"}

    app.router.add_api_route("/api/v1/forgotten", forgotten)
    token = (await api.nobody.post("/api/v1/auth/login", {"username": "admin", "password": api.password})).json()[
        "token"
    ]
    client = Client(app, {"Authorization": f"Bearer {token}"})
    assert (await client.get("/api/v1/forgotten")).status_code == 403
    await client.close()


async def test_each_route_lets_in_only_whom_its_policy_names(api: Api) -> None:
    """Nobody and callers of the wrong kind get 401 or 403, before their body is even read."""
    callers = {Allow.PUBLIC: api.nobody, Allow.USER: api.user, Allow.ADMIN: api.admin}
    wrong = []
    for route in DECLARED:
        for kind, client in callers.items():
            if route.method == "WEBSOCKET" or kind in MAY[route.allow]:
                continue
            reply = await client.ask(route.method, _path(route), b"{ not even JSON")
            expected = 401 if kind is Allow.PUBLIC or route.allow is Allow.AGENT else 403
            if reply.status_code != expected:
                wrong.append((route.operation, kind, reply.status_code, reply.text))
    assert not wrong


async def test_a_malformed_body_is_never_our_error(api: Api) -> None:
    """Whatever comes in, the answer is a refusal that says why, or a success; never 500."""
    wrong = []
    for route in DECLARED:
        if route.method not in ("POST", "PUT", "PATCH") or Allow.ADMIN not in MAY[route.allow]:
            continue
        for body in MALFORMED:
            reply = await api.admin.ask(route.method, _path(route), body)
            document = reply.json()
            if reply.status_code == 401:
                api.admin = await api.login("admin", api.password)
            elif reply.status_code >= 500 and reply.status_code != 501:
                wrong.append((route.operation, body[:20], reply.text))
            elif reply.status_code >= 400:
                assert document["error"]["error"] if route.path.startswith("/api/v1") else document["message"]
    assert not wrong


@pytest.mark.parametrize("count", [3, pytest.param(30, marks=pytest.mark.long, id="all")])
async def test_strange_paths_and_queries_are_never_our_error(api: Api, count: int) -> None:
    """Identifiers of any kind and size, and parameters that are no values; each route gets the next few of them."""
    wrong, pairs = [], cycle(product(STRANGE_NAMES, STRANGE_QUERIES))
    for route in DECLARED:
        if route.method == "WEBSOCKET" or Allow.ADMIN not in MAY[route.allow] or route.operation == "Logout":
            continue
        some = islice(pairs, count if "{" in route.path else len(STRANGE_QUERIES))
        for path, query in {(re.sub(r"\{[^}]*\}", name, route.path), query) for name, query in some}:
            reply = await api.admin.ask(route.method, path + query)
            if reply.status_code >= 500 and reply.status_code != 501:
                wrong.append((route.operation, path, query, reply.status_code, reply.text[:200]))
    assert not wrong


async def test_a_database_that_is_away_is_told_with_when_to_try_again(api: Api) -> None:
    """503 with Retry-After on every kind of route, never 500: tasks try again only then."""
    await api.master.db.close()
    for path in ("/api/v1/me", "/api/v1/experiments/1", "/api/v1/allocations/x/signals/preemption"):
        reply = await api.user.get(path)
        assert reply.status_code == 503, reply.text
        assert int(reply.headers["retry-after"]) >= 1
        assert reply.json()["error"]["reason"] == "Unavailable"
    assert (await api.nobody.get("/health")).json()["status"] == "down"
    assert (await api.nobody.get("/info")).status_code == 200


@pytest.mark.parametrize("content_type", ["", "application/x-www-form-urlencoded", "text/plain"])
async def test_a_body_is_json_whatever_its_content_type_says(api: Api, content_type: str) -> None:
    """Clients send none, or the wrong one. A login alone takes no form's (`tests/attack/test_login.py`)."""
    headers = {"Authorization": f"Bearer {bearer(api.user)}"} | ({"Content-Type": content_type} if content_type else {})
    body = json.dumps({"displayName": "Dee"}).encode()
    assert (await api.client(headers).ask("PATCH", "/api/v1/users/2", body)).status_code == 200


async def test_both_spellings_of_fields_and_parameters_are_read(api: Api) -> None:
    """Camel case and snake case mean the same, in bodies and in queries; null is absent."""
    for body in ({"displayName": "A", "username": None}, {"display_name": "A"}):
        reply = await api.user.patch("/api/v1/users/2", body)
        assert reply.json()["user"]["displayName"] == "A", reply.text
    for query in ({"sortBy": "SORT_BY_USER_NAME"}, {"sort_by": "SORT_BY_USER_NAME"}):
        users = (await api.user.get("/api/v1/users", **query, limit=1)).json()["users"]
        assert users[0]["username"] == "admin"


@pytest.mark.parametrize(
    ("camel", "snake"),
    [
        ("limit", "limit"),
        ("orderBy", "order_by"),
        ("experimentIdFilter.notIn", "experiment_id_filter.not_in"),
        ("container_id", "container_id"),
        ("b64Tgz", "b64_tgz"),
    ],
)
def test_parameters_are_renamed_to_snake_case(camel: str, snake: str) -> None:
    """Names that are in snake case already stay."""
    assert to_snake(camel) == snake


async def test_error_bodies_are_those_that_clients_parse(api: Api) -> None:
    """gRPC's number and name under /api/v1, a message elsewhere."""
    reply = await api.user.get("/api/v1/users/99")
    assert reply.status_code == 404
    assert reply.json()["error"].items() >= {"code": 5, "reason": "NotFound", "error": "user 99 not found"}.items()
    assert (await api.user.get("/nowhere")).json() == {"message": "Not Found"}
    beyond = await api.user.get("/api/v1/users/99999999999999999999999")
    assert beyond.status_code == 400


async def test_a_write_by_cookie_needs_our_own_origin(api: Api) -> None:
    """A browser sends the cookie for any site; only our own page may change things with it."""
    login = await api.nobody.post("/api/v1/auth/login", {"username": "admin", "password": api.password})
    cookie = {"Cookie": f"auth={login.json()['token']}"}
    assert (await api.client(cookie).get("/api/v1/me")).status_code == 200
    for origin in ({}, {"Origin": "http://evil"}, {"Origin": "null"}):
        assert (await api.client(cookie | origin).patch("/api/v1/users/1", {"displayName": "x"})).status_code == 403
    ours = await api.client(cookie | {"Origin": "http://master"}).patch("/api/v1/users/1", {"displayName": "x"})
    assert ours.status_code == 200


async def test_authorization_counts_before_the_cookie(api: Api) -> None:
    """A wrong header is not rescued by a right cookie."""
    login = await api.nobody.post("/api/v1/auth/login", {"username": "admin", "password": api.password})
    headers = {"Cookie": f"auth={login.json()['token']}", "Authorization": "Bearer wrong"}
    assert (await api.client(headers).get("/api/v1/me")).status_code == 401


async def test_a_body_over_the_limit_is_refused(api: Api) -> None:
    """With its size declared or not; the answer says how much is taken."""
    app = create_app(
        api.master.__class__(
            api.master.settings.model_copy(update={"body_limit_bytes": 1000}),
            api.master.db,
            api.master.listener,
            api.master.cluster,
            "m",
            passwords=api.master.passwords,
        )
    )
    client = Client(app)

    async def pieces() -> object:
        for _ in range(20):
            yield b" " * 100

    declared = await client.ask("POST", "/api/v1/auth/login", b" " * 2000)
    streamed = await client._http.post("/api/v1/auth/login", content=pieces())
    await client.close()
    assert declared.status_code == streamed.status_code == 413
    assert "KiB" in declared.json()["error"]["error"]


async def test_the_contract_is_published(api: Api) -> None:
    """OpenAPI names every operation once, with camel-case parameters, and says who may call it."""
    document = (await api.nobody.get("/api/v1/openapi.json")).json()
    operations = {op["operationId"]: op for path in document["paths"].values() for op in path.values()}
    assert set(operations) == {route.operation for route in DECLARED if route.method != "WEBSOCKET"}
    assert operations["PatchUser"]["x-allow"] == "user"
    assert "/api/v1/users/{userId}" in document["paths"]
    assert {"sortBy", "orderBy"} <= {p["name"] for p in operations["GetUsers"]["parameters"]}
    assert "422" not in operations["PatchUser"]["responses"]


async def test_every_message_has_its_own_name_in_the_contract(api: Api) -> None:
    """Two classes of one name would both be published under those of their modules; what is taken in and given out in
    two forms, under two names of which its users knew neither."""
    schemas = (await api.nobody.get("/api/v1/openapi.json")).json()["components"]["schemas"]
    assert "LogLevel" in schemas
    assert [name for name in schemas if not name.isalnum()] == []


async def test_anyone_may_ask_who_answers(api: Api) -> None:
    """/info is what every client asks first."""
    info = (await api.nobody.get("/info")).json()
    assert info["version"] == "0.38.1"
    assert info["cluster_id"] == api.master.cluster.cluster_id
    assert info["telemetry"]["enabled"] is False
    assert (await api.nobody.get("/health")).json()["database"] == "up"
    assert (await api.nobody.get("/api/v1/master")).json()["clusterId"] == info["cluster_id"]


async def test_requests_are_counted_by_route(api: Api) -> None:
    """The label is the route's pattern, never the path with its ids."""
    await api.user.get("/api/v1/users/1")
    text = (await api.nobody.get("/metrics")).text
    assert 'tenax_http_requests_total{method="GET",route="/api/v1/users/{user_id}",status="200"}' in text
    assert "/api/v1/users/1" not in text


async def test_nobody_makes_series_without_a_login(api: Api) -> None:
    """What was refused is counted in one place, whatever was asked for: series stay, and everyone pays for them."""
    routes = [route for route in api.app.routes if isinstance(route, APIRoute)]

    def series() -> int:
        return counters.exposition().count(b"\n")

    for route in routes[:40]:
        await api.nobody.ask("GET", route.path)
    before = series()
    for route in routes[40:160]:
        if allowed(route.endpoint) is Allow.USER:
            for method in ("GET", "POST", "DELETE"):
                assert (await api.nobody.ask(method, route.path)).status_code in (401, 405)
    await api.nobody.ask("GET", "/nowhere")
    await api.nobody.ask("DELETE", "/elsewhere")
    assert series() - before < 60


def test_routes_keep_their_order() -> None:
    """The first that matches answers, so declarations are kept as they stand."""
    routes = Routes("x")

    @routes.get("/a", "A", allow=Allow.PUBLIC)
    async def a() -> None: ...

    @routes.get("/{b}", "B", allow=Allow.USER)
    async def b() -> None: ...

    assert [(route.path, route.allow) for route in routes.declared] == [("/a", Allow.PUBLIC), ("/{b}", Allow.USER)]
