"""A double of Compute Engine: an HTTP server that takes no request that the API's own description does not allow.

The description is the discovery document that ships in google-api-python-client. Each request must be one of its
methods, with its parameters and a body of its fields, types, enumerations and patterns; what the provider alone sets
is refused. As at the provider: tokens are issued for a signed assertion; an order with a request id that was seen gives
the first operation; an operation is over only after it was asked for, and an instance that it fails to make is listed
for a while; what is deleted is listed while it stops; a page has an end.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

PROJECT, ZONES = "test-project", ("us-central1-a", "us-central1-b", "us-east1-b")
NETWORK = f"projects/{PROJECT}/global/networks/default"
IMAGE = f"projects/{PROJECT}/global/images/tenax"
SUBNETWORK = f"projects/{PROJECT}/regions/us-central1/subnetworks/tenax"
ROUTERS = f"projects/{PROJECT}/regions/us-central1/routers"
EMAIL = f"master@{PROJECT}.iam.gserviceaccount.com"
#: Processors, and the GPUs that a type comes with.
MACHINE_TYPES: Mapping[str, tuple[int, Mapping[str, int]]] = {
    "e2-standard-2": (2, {}),
    "e2-small": (2, {}),
    "n1-standard-8": (8, {}),
    "t2a-standard-2": (2, {}),
    "a2-highgpu-4g": (48, {"nvidia-tesla-a100": 4}),
}
#: Of the assertion for a token, wherever it is asked for.
_AUDIENCE = "https://oauth2.googleapis.com/token"
#: What tokens are for.
_SCOPES = {
    "https://www.googleapis.com/auth/compute": "compute",
    "https://www.googleapis.com/auth/cloud-billing.readonly": "billing",
}
_ALIVE = ("PROVISIONING", "STAGING", "RUNNING")


def discovery() -> dict[str, Any]:
    """The description of compute, v1."""
    found = find_spec("googleapiclient")
    assert found is not None, "google-api-python-client is not installed"
    assert found.submodule_search_locations
    folder = Path(found.submodule_search_locations[0]) / "discovery_cache" / "documents"
    return dict(json.loads((folder / "compute.v1.json").read_text()))


class Refused(Exception):
    """What the provider answers instead."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.body = {
            "error": {
                "code": status,
                "message": message,
                "errors": [{"message": message, "domain": "global", "reason": reason}],
            }
        }


def faults(schemas: Mapping[str, Any], schema: Mapping[str, Any], value: Any, at: str) -> Iterator[str]:
    """What of a value its description does not allow."""
    schema = schemas[schema["$ref"]] if "$ref" in schema else schema
    kind = schema.get("type", "any")
    types = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "boolean": bool}
    if kind in types and (not isinstance(value, types[kind]) or (kind == "integer" and isinstance(value, bool))):
        yield f"{at} is no {kind}"
    elif kind == "array":
        for number, item in enumerate(value):
            yield from faults(schemas, schema["items"], item, f"{at}[{number}]")
    elif kind == "object":
        for name, item in value.items():
            inner = schema.get("properties", {}).get(name, schema.get("additionalProperties"))
            if inner is None:
                yield f"{at}.{name} is unknown"
            elif "[Output Only]" in inner.get("description", ""):
                yield f"{at}.{name} is the provider's"
            else:
                yield from faults(schemas, inner, item, f"{at}.{name}")
    elif kind == "string":
        if "enum" in schema and value not in schema["enum"]:
            yield f"{at} is none of {schema['enum']}"
        if "pattern" in schema and re.fullmatch(schema["pattern"], value) is None:
            yield f"{at} is no {schema['pattern']}"
        if schema.get("format") in ("int64", "uint64") and re.fullmatch(r"-?\d+", value) is None:
            yield f"{at} is no number"


@dataclass
class Operation:
    """One that is under way, or over."""

    name: str
    zone: str
    kind: str
    #: ``zone/name`` of the instance.
    target: str
    #: So often it is asked for until it is over.
    left: int = 1
    errors: list[dict[str, str]] = field(default_factory=list)

    def view(self) -> dict[str, Any]:
        over = {"status": "DONE", "progress": 100} if self.left <= 0 else {"status": "RUNNING", "progress": 0}
        failed = {"error": {"errors": self.errors}} if self.left <= 0 and self.errors else {}
        return {"kind": "compute#operation", "name": self.name, "operationType": self.kind, **over, **failed}


class ComputeEngine:
    """What there is of a project, as its owner sees it; and what goes wrong."""

    def __init__(self) -> None:
        self.document = discovery()
        self.lock = threading.RLock()
        self.reset()

    def reset(self) -> None:
        """There is nothing, and all is well."""
        self.instances: dict[str, dict[str, Any]] = {}
        #: By ``zone/name``, and by ``region/name``; what is deleted is gone.
        self.disks: dict[str, dict[str, Any]] = {}
        self.addresses: dict[str, dict[str, Any]] = {}
        self.operations: dict[str, Operation] = {}
        #: Which operation a request id has begun.
        self.requests: dict[str, str] = {}
        self.calls: list[str] = []
        #: Entries of the catalogue of prices; what it is answered instead.
        self.catalog: list[dict[str, Any]] = []
        self.catalog_refusal: Refused | None = None
        #: Zones that have no machines, and those that do not answer.
        self.exhausted: set[str] = set()
        self.unreachable: set[str] = set()
        #: What each order is answered.
        self.refusal: Refused | None = None
        #: Operations are never over.
        self.stuck = False
        self.page_size = 500
        #: What there is beside machines, by its path, as the API describes it.
        self.resources: dict[str, dict[str, Any]] = {
            IMAGE: {"name": "tenax", "architecture": "X86_64", "diskSizeGb": "50"},
            SUBNETWORK: {"name": "tenax"},
            ROUTERS: {"items": [{"name": "out", "nats": [{"name": "nat"}]}]},
            **{
                f"projects/{PROJECT}/zones/{zone}/acceleratorTypes/nvidia-tesla-t4": {"maximumCardsPerInstance": 4}
                for zone in ZONES
            },
        }
        #: Rights that the account has on them.
        self.rights = {"compute.images.useReadOnly", "compute.subnetworks.use"}
        #: Methods that the account may not call.
        self.forbidden: set[str] = set()

    def alive(self, *statuses: str) -> list[str]:
        """Ids of what is there and not ending."""
        with self.lock:
            return [name for name, each in self.instances.items() if each["status"] in (statuses or _ALIVE)]

    def catalog_page(self, query: Mapping[str, str]) -> dict[str, Any]:
        """Of Cloud Billing."""
        with self.lock:
            self.calls.append("cloudbilling.services.skus.list")
            if self.catalog_refusal is not None:
                raise self.catalog_refusal
            if (
                query.keys() - {"currencyCode", "pageSize", "pageToken", "fields"}
                or not 1 <= int(query["pageSize"]) <= 5000
            ):
                raise Refused(400, "badRequest", "Request contains an invalid argument.")
            start, size = int(query.get("pageToken", 0)), min(self.page_size, int(query["pageSize"]))
            more = {"nextPageToken": str(start + size)} if start + size < len(self.catalog) else {"nextPageToken": ""}
            return {"skus": self.catalog[start : start + size], **more}

    def call(self, name: str, given: Mapping[str, str], query: Mapping[str, str], body: Any) -> dict[str, Any]:
        """One method of the API."""
        with self.lock:
            self.calls.append(name)
            if name in self.forbidden:
                right = name.replace("getFromFamily", "get")
                raise Refused(403, "forbidden", f"Required '{right}' permission for 'projects/{PROJECT}'")
            match name:
                case "compute.instances.insert":
                    return self._insert(given, query, body)
                case "compute.instances.delete":
                    return self._delete(f"{given['zone']}/{given['instance']}")
                case "compute.instances.get":
                    return self._there(f"{given['zone']}/{given['instance']}")
                case "compute.instances.aggregatedList":
                    page = self._list(query, "instances", self.instances)
                    if "nextPageToken" not in page:
                        self._advance()
                    return page
                case "compute.disks.aggregatedList":
                    return self._list(query, "disks", self.disks)
                case "compute.addresses.aggregatedList":
                    return self._list(query, "addresses", self.addresses)
                case "compute.globalOperations.aggregatedList":
                    return self._under_way(query)
                case "compute.disks.delete":
                    return self._give_up(self.disks, f"{given['zone']}/{given['disk']}")
                case "compute.zoneOperations.get":
                    if given["operation"] not in self.operations:
                        raise Refused(404, "notFound", f"The resource '{given['operation']}' was not found")
                    view = self.operations[given["operation"]].view()
                    self._advance()
                    return view
                case "compute.machineTypes.get":
                    return self._machine_type(given)
                case "compute.images.get" | "compute.subnetworks.get" | "compute.acceleratorTypes.get":
                    return self._resource(query["path"])
                case "compute.routers.list":
                    return self.resources.get(query["path"], {})
                case "compute.images.testIamPermissions" | "compute.subnetworks.testIamPermissions":
                    self._resource(query["path"].rpartition("/")[0])
                    return {"permissions": [each for each in body["permissions"] if each in self.rights]}
        raise AssertionError(f"the double has no {name}")

    def _resource(self, path: str) -> dict[str, Any]:
        if path not in self.resources:
            raise Refused(404, "notFound", f"The resource '{path}' was not found")
        return self.resources[path]

    def _insert(self, given: Mapping[str, str], query: Mapping[str, str], body: dict[str, Any]) -> dict[str, Any]:
        zone, name = given["zone"], f"{given['zone']}/{body['name']}"
        if (before := self.requests.get(query.get("requestId", ""))) is not None:
            return self.operations[before].view()
        if self.refusal is not None:
            raise self.refusal
        self._check(zone, body)
        if name in self.instances:
            raise Refused(409, "alreadyExists", f"The resource '{name}' already exists")
        operation = self._operation("insert", name)
        operation.left = 2
        if zone in self.exhausted:
            message = f"The zone '{zone}' does not have enough resources available to fulfill the request."
            operation.errors.append({"code": "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", "message": message})
        if "requestId" in query:
            self.requests[query["requestId"]] = operation.name
        self.instances[name] = {**body, "status": "PROVISIONING", "zone": f"projects/{PROJECT}/zones/{zone}"}
        return operation.view()

    def _check(self, zone: str, body: dict[str, Any]) -> None:
        """What no description says."""
        wrong = [each for each in ("disks", "machineType", "networkInterfaces") if not body.get(each)]
        for key, value in body.get("labels", {}).items():
            if not re.fullmatch(r"[a-z][-_a-z0-9]{0,62}", key) or not re.fullmatch(r"[-_a-z0-9]{0,63}", value):
                wrong.append(f"labels.{key}")
        kind = body["machineType"].rpartition("/")[2]
        if kind not in MACHINE_TYPES or f"zones/{zone}/" not in body["machineType"]:
            wrong.append("machineType")
        scheduling = body.get("scheduling", {})
        gpus = body.get("guestAccelerators") or (kind in MACHINE_TYPES and MACHINE_TYPES[kind][1])
        spot = scheduling.get("provisioningModel") == "SPOT"
        if gpus and scheduling.get("onHostMaintenance") != "TERMINATE":
            wrong.append("scheduling.onHostMaintenance")
        if spot and (scheduling.get("automaticRestart", True) or scheduling.get("onHostMaintenance") == "MIGRATE"):
            wrong.append("scheduling")
        if "instanceTerminationAction" in scheduling and not spot and "maxRunDuration" not in scheduling:
            wrong.append("scheduling.instanceTerminationAction")
        if not 30 <= int(scheduling.get("maxRunDuration", {}).get("seconds", "30")) <= 120 * 86400:
            wrong.append("scheduling.maxRunDuration")
        for number, interface in enumerate(body.get("networkInterfaces", [])):
            if not interface.get("network", NETWORK).endswith("global/networks/default") or interface.get("subnetwork"):
                wrong.append(f"networkInterfaces[{number}]")
        if body["disks"][0]["initializeParams"].get("sourceImage") != IMAGE:
            wrong.append("disks[0].initializeParams.sourceImage")
        if wrong:
            raise Refused(400, "invalid", f"Invalid value for field 'resource.{wrong[0]}'")

    def _delete(self, name: str) -> dict[str, Any]:
        self._there(name)["status"] = "STOPPING"
        return self._operation("delete", name).view()

    def _there(self, name: str) -> dict[str, Any]:
        if name not in self.instances:
            raise Refused(404, "notFound", f"The resource '{name}' was not found")
        return self.instances[name]

    def _machine_type(self, given: Mapping[str, str]) -> dict[str, Any]:
        if given["machineType"] not in MACHINE_TYPES or given["zone"] not in ZONES:
            raise Refused(404, "notFound", f"The resource '{given['machineType']}' was not found")
        cpus, gpus = MACHINE_TYPES[given["machineType"]]
        comes = [{"guestAcceleratorType": kind, "guestAcceleratorCount": count} for kind, count in gpus.items()]
        architecture = "ARM64" if given["machineType"].startswith("t2a") else "X86_64"
        own = {"architecture": architecture, "guestCpus": cpus, "memoryMb": 4096 * cpus}
        own["isSharedCpu"] = given["machineType"] == "e2-small"
        return {"name": given["machineType"], **own, **({"accelerators": comes} if comes else {})}

    def _give_up(self, there: dict[str, dict[str, Any]], name: str) -> dict[str, Any]:
        """A disk."""
        if name not in there:
            raise Refused(404, "notFound", f"The resource '{name}' was not found")
        if users := there[name].get("users"):
            raise Refused(400, "resourceInUseByAnotherResource", f"'{name}' is already being used by '{users[0]}'")
        del there[name]
        return Operation("operation-of-it", name.partition("/")[0], "delete", name, 0).view()

    def _under_way(self, query: Mapping[str, str]) -> dict[str, Any]:
        """Operations, of all zones; whose they are nobody says."""
        if query.get("filter") != "status!=DONE":
            raise Refused(400, "invalid", "Invalid list filter expression.")
        items: dict[str, Any] = {f"zones/{zone}": {"operations": []} for zone in ZONES}
        for each in self.operations.values():
            if each.left > 0:
                zone, _, name = each.target.partition("/")
                link = f"https://www.googleapis.com/compute/v1/projects/{PROJECT}/zones/{zone}/instances/{name}"
                items[f"zones/{zone}"]["operations"].append({**each.view(), "targetLink": link})
        return {"items": items}

    def _list(self, query: Mapping[str, str], key: str, there: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
        chosen = re.fullmatch(r"labels\.([-_a-z0-9]+)=([-_a-z0-9]*)", query.get("filter", "labels.none="))
        if chosen is None:
            raise Refused(400, "invalid", "Invalid list filter expression.")
        names = [
            name for name, each in sorted(there.items())
            if "filter" not in query or each.get("labels", {}).get(chosen[1]) == chosen[2]
        ]  # fmt: skip
        start, size = int(query.get("pageToken", 0)), min(self.page_size, int(query.get("maxResults", 500)))
        items: dict[str, Any] = {f"zones/{zone}": {} for zone in ZONES}
        for name in names[start : start + size]:
            place = name.partition("/")[0]
            scope = f"zones/{place}" if place in ZONES else f"regions/{place}"
            items.setdefault(scope, {}).setdefault(key, []).append(json.loads(json.dumps(there[name])))
        for scope, of_scope in items.items():
            code = "UNREACHABLE" if scope.rpartition("/")[2] in self.unreachable else "NO_RESULTS_ON_PAGE"
            if code == "UNREACHABLE" or not of_scope:
                items[scope] = {"warning": {"code": code, "message": f"'{scope}'"}}
        more = {"nextPageToken": str(start + size)} if start + size < len(names) else {}
        return {"items": items, **more}

    def _operation(self, kind: str, target: str) -> Operation:
        name = f"operation-{len(self.operations)}"
        self.operations[name] = Operation(name, target.partition("/")[0], kind, target)
        return self.operations[name]

    def _advance(self) -> None:
        """Time goes by."""
        for operation in [] if self.stuck else self.operations.values():
            if operation.left <= 0:
                continue
            operation.left -= 1
            instance = self.instances.get(operation.target)
            if operation.left or instance is None:
                continue
            if operation.kind == "delete" or operation.errors:
                del self.instances[operation.target]
            elif instance["status"] == "PROVISIONING":
                instance["status"] = "RUNNING"


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, engine: ComputeEngine, public_key: bytes) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.engine = engine
        self.public_key = public_key
        self.methods = list(_methods(engine.document["resources"]))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


def _methods(resources: Mapping[str, Any]) -> Iterator[tuple[str, re.Pattern[str], dict[str, Any]]]:
    for resource in resources.values():
        for method in resource.get("methods", {}).values():
            path = re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", method.get("flatPath", method["path"]))
            yield method["httpMethod"], re.compile(f"/compute/v1/{path}"), method
        yield from _methods(resource.get("resources", {}))


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def _serve(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        address = urlsplit(self.path)
        try:
            if address.path == "/token":
                self._answer(200, self._token(content.decode()))
                return
            is_billing = address.path == "/v1/services/6F81-5844-456A/skus"
            if self.headers.get("Authorization") != f"Bearer a-token for {'billing' if is_billing else 'compute'}":
                raise Refused(401, "authError", "Invalid Credentials")
            query = {name: values[0] for name, values in parse_qs(address.query).items()}
            if is_billing:
                self._answer(200, self.server.engine.catalog_page(query))
                return
            self._answer(200, self._call(address.path, query, json.loads(content) if content else None))
        except Refused as refused:
            self._answer(refused.status, refused.body)

    do_GET = do_POST = do_DELETE = do_PUT = do_PATCH = _serve

    def _token(self, form: str) -> dict[str, Any]:
        """For an assertion that the account has signed, with the right that the calls need."""
        from google.auth import jwt

        given = {name: values[0] for name, values in parse_qs(form).items()}
        claims = jwt.decode(given["assertion"], certs=self.server.public_key, audience=_AUDIENCE)
        kind = _SCOPES.get(claims["scope"])
        if kind is None or claims["iss"] != EMAIL:
            raise Refused(403, "forbidden", "the scope is not enough")
        return {"access_token": f"a-token for {kind}", "expires_in": 3600, "token_type": "Bearer"}

    def _call(self, path: str, query: dict[str, str], body: Any) -> dict[str, Any]:
        document = self.server.engine.document
        for verb, pattern, method in self.server.methods:
            match = pattern.fullmatch(path)
            if match is None or verb != self.command:
                continue
            taken = {name for name, each in method["parameters"].items() if each["location"] == "query"}
            wrong = [f"parameter {name}" for name in query.keys() - taken - document["parameters"].keys()]
            for name, value in match.groupdict().items():
                if "pattern" in method["parameters"][name]:
                    wrong += [] if re.fullmatch(method["parameters"][name]["pattern"], value) else [f"{name} {value}"]
            if "request" in method:
                wrong += faults(document["schemas"], method["request"], body, "resource")
            if "requestId" in query and not re.fullmatch(
                r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", query["requestId"]
            ):
                wrong.append("requestId")
            if wrong or (body is not None) != ("request" in method):
                raise Refused(400, "badRequest", f"Invalid JSON payload received: {'; '.join(wrong) or 'a body'}")
            if match["project"] != PROJECT:
                raise Refused(404, "notFound", f"The resource 'projects/{match['project']}' was not found")
            # For what is found by its path alone.
            query["path"] = path.partition("/compute/v1/")[2]
            return self.server.engine.call(method["id"], match.groupdict(), query, body)
        raise Refused(404, "notFound", f"{self.command} {path} is no method of the API")

    def _answer(self, status: int, answer: Mapping[str, Any]) -> None:
        content = json.dumps(answer).encode()
        self.send_response_only(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@contextmanager
def compute_engine(directory: Path) -> Iterator[tuple[ComputeEngine, str, Mapping[str, str]]]:
    """The double, its address, and the variables by which an account of it is found; its key is in the directory."""
    from cryptography.hazmat.primitives import serialization as forms
    from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key

    key = generate_private_key(public_exponent=65537, key_size=2048)
    private = key.private_bytes(forms.Encoding.PEM, forms.PrivateFormat.PKCS8, forms.NoEncryption())
    public = key.public_key().public_bytes(forms.Encoding.PEM, forms.PublicFormat.SubjectPublicKeyInfo)
    engine = ComputeEngine()
    server = _Server(engine, public)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    account = {
        "type": "service_account", "project_id": PROJECT, "private_key_id": "1", "private_key": private.decode(),
        "client_email": EMAIL, "client_id": "1", "token_uri": f"{server.url}/token",
    }  # fmt: skip
    file = directory / "account.json"
    file.write_text(json.dumps(account))
    try:
        yield engine, server.url, {"GOOGLE_APPLICATION_CREDENTIALS": str(file), "NO_GCE_CHECK": "true"}
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
