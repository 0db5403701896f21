"""Machines of Google Cloud, by Compute Engine's REST API (v1).

Rules: google-auth is loaded when the first call is made, and not before; it takes credentials from where it always does
(GOOGLE_APPLICATION_CREDENTIALS, what gcloud has left, the account of the machine). A call is made once: whether to
repeat it is decided by who asks. An order is carried out by an operation, which may fail minutes later: no call waits
for it, and looks tell how it went. A machine that has stopped would keep its disk: the look that sees it deletes it.
What is kept in memory only saves time: which operations are under way. An order is of one zone.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, cast

from tenax.config.provider import is_own_address
from tenax.config.provider.gcp import AnyProviderSettings, GcpSettings
from tenax.display.plural import counted
from tenax.jsonvalue import JsonObject, as_object
from tenax.lifecycle.offer import RestCause
from tenax.master.provision.gcp_check import findings
from tenax.master.provision.gcp_instances import (
    ProviderRefusal,
    filter_of,
    instance_body,
    instance_name,
    misfit,
    refusal_of_answer,
    refusal_of_operation,
    request_id,
    seen_instance,
)
from tenax.master.provision.gcp_parts import of_zones, parts_of, removal_path
from tenax.master.provision.gcp_prices import CATALOG_FIELDS, CATALOG_PATH, answers_of
from tenax.master.provision.port import (
    MachineOrder,
    MachinePart,
    OfferAnswers,
    OrderRefused,
    PartsAnswer,
    ProviderAway,
    ProviderFinding,
    ProviderPlace,
    SeenMachine,
    refused,
    shown,
)

_ENDPOINT = "https://compute.googleapis.com"
_SCOPE = "https://www.googleapis.com/auth/compute"
_BILLING_ENDPOINT = "https://cloudbilling.googleapis.com"
_BILLING_SCOPE = "https://www.googleapis.com/auth/cloud-billing.readonly"
_CONNECT_S, _ANSWER_S = 5, 20
#: For how long a failure is told.
_TELL_S = 600.0
_MAX_PAGE, _MAX_CATALOG_PAGE = "500", "5000"
#: Of the catalogue, which has some ten of them.
_CATALOG_PAGES = 100
_NOTHING = OfferAnswers()


class _Answer(Protocol):
    status_code: int

    def json(self) -> object: ...


class _Session(Protocol):
    def request(self, method: str, url: str, **options: object) -> _Answer: ...


class _Transport(Protocol):
    def AuthorizedSession(self, credentials: object) -> object: ...


@dataclass(frozen=True, slots=True)
class _Operation:
    """An order that is being carried out."""

    name: str
    zone: str
    seen: SeenMachine
    #: By the clock of this process.
    given_up_at: float
    limit_s: float


class Gcp:
    """One region of one project."""

    def __init__(self, place: ProviderPlace, cluster_id: str) -> None:
        self._project, _, self._region = place.region.rpartition("/")
        self._base = f"{place.endpoint or _ENDPOINT}/compute/v1/"
        # An endpoint is that of Compute Engine; on this machine it is a server of all services.
        self._billing = place.endpoint if is_own_address(place.endpoint) else _BILLING_ENDPOINT
        self._url = f"{self._base}projects/{self._project}"
        self._cluster_id = cluster_id
        #: By what their credentials are for.
        self._sessions: dict[str, _Session] = {}
        self._under_way: dict[str, _Operation] = {}
        #: Machines that were not made, until when that is told, by the provider's name.
        self._failed: dict[str, tuple[SeenMachine, float]] = {}
        self._types: dict[tuple[str, str], JsonObject] = {}

    async def launch(self, order: MachineOrder) -> SeenMachine:
        """In the first zone; the order's id makes the request's. Raises OrderRefused, ProviderAway."""
        settings = order.settings
        assert isinstance(settings, GcpSettings)
        try:
            return await asyncio.to_thread(self._insert, order, settings, settings.places[0])
        except (OrderRefused, ProviderAway) as error:
            # An answer may show what it does not like of the request.
            message = shown(error.message, [order.user_data])
            raise refused(error.cause, message) if isinstance(error, OrderRefused) else ProviderAway(message) from None

    async def look(self) -> Sequence[SeenMachine]:
        """All pages of what carries the mark in the region, with how orders went. Raises ProviderAway."""
        try:
            return await asyncio.to_thread(self._look)
        except (OrderRefused, ProviderAway) as error:
            raise ProviderAway(shown(error.message)) from None

    async def end(self, provider_ids: Sequence[str]) -> None:
        """Each by itself. Raises ProviderAway."""
        for provider_id in provider_ids:
            try:
                await asyncio.to_thread(self._delete, provider_id)
            except (OrderRefused, ProviderAway) as error:
                raise ProviderAway(shown(error.message)) from None

    async def ask(self, offers: Sequence[AnyProviderSettings]) -> OfferAnswers:
        """Prices, by the catalogue of Cloud Billing, with credentials for it alone."""
        of_google = [offer for offer in offers if isinstance(offer, GcpSettings) and offer.price is None]
        return await asyncio.to_thread(answers_of, of_google, self._type_of, self._catalog) if of_google else _NOTHING

    async def check(self, settings: AnyProviderSettings) -> Sequence[ProviderFinding]:
        """By calls that describe. Raises ProviderAway."""
        assert isinstance(settings, GcpSettings)
        return await asyncio.to_thread(findings, settings, self._ask_for)

    async def parts(self) -> PartsAnswer:
        """Disks, addresses, and operations that are under way."""
        return await asyncio.to_thread(parts_of, filter_of(self._cluster_id), self._region, self._pages)

    async def remove(self, part: MachinePart) -> None:
        """Raises OrderRefused, ProviderAway."""
        try:
            _, answer = await asyncio.to_thread(self._call, "DELETE", removal_path(part), unless=(404,))
            if (refusal := refusal_of_operation(answer)) is not None:
                raise _error_of(refusal)
        except (OrderRefused, ProviderAway) as error:
            message = shown(error.message)
            raise refused(error.cause, message) if isinstance(error, OrderRefused) else ProviderAway(message) from None

    def _type_of(self, offer: GcpSettings) -> JsonObject:
        return self._machine_type(offer.places[0], offer.instance_type.machine_type)

    def _catalog(self) -> Iterator[JsonObject]:
        options = {"currencyCode": "USD", "pageSize": _MAX_CATALOG_PAGE, "fields": CATALOG_FIELDS}
        base = f"{self._billing}/v1"
        for _ in range(_CATALOG_PAGES):
            page = self._call("GET", CATALOG_PATH, options, base=base, scope=_BILLING_SCOPE)[1]
            yield page
            if not page.get("nextPageToken"):
                return
            options["pageToken"] = str(page["nextPageToken"])
        raise ProviderAway(f"the catalogue has more than {_CATALOG_PAGES} pages")

    def _ask_for(self, method: str, path: str, body: JsonObject | None = None) -> JsonObject:
        """Of a whole path, in this or another project. Raises OrderRefused, ProviderAway."""
        return self._call(method, path, body=body, base=self._base)[1]

    def _insert(self, order: MachineOrder, settings: GcpSettings, zone: str) -> SeenMachine:
        machine_type = self._machine_type(zone, settings.instance_type.machine_type)
        if (why := misfit(settings, machine_type)) is not None:
            raise refused(RestCause.BAD_ORDER, why)
        body = instance_body(self._cluster_id, order, settings, zone, machine_type)
        status, answer = self._call(
            "POST", f"/zones/{zone}/instances", {"requestId": request_id(order, zone)}, body, unless=(409,)
        )
        if status == 409:
            return self._made_before(order, instance_name(order, settings), zone)
        if (refusal := refusal_of_operation(answer)) is not None:
            raise _error_of(refusal)
        seen = replace(seen_instance(body, zone), made=answer.get("status") == "DONE")
        if not seen.made:
            limit_s = settings.operation_timeout_period
            until = time.monotonic() + limit_s
            self._under_way[seen.provider_id] = _Operation(str(answer["name"]), zone, seen, until, limit_s)
        return seen

    def _made_before(self, order: MachineOrder, name: str, zone: str) -> SeenMachine:
        """The machine that bears the name of the order already: it was made by it, or is another's."""
        status, instance = self._call("GET", f"/zones/{zone}/instances/{name}", unless=(404,))
        if status == 404:
            raise ProviderAway(f"an instance called {name} is being deleted")
        seen = seen_instance(instance, zone)
        if seen.machine_id != order.machine_id:
            why = f"there is an instance called {name} that is none of this cluster's: delete it"
            raise refused(RestCause.REFUSED, why)
        return seen

    def _machine_type(self, zone: str, name: str) -> JsonObject:
        """As the provider describes it; asked once."""
        if (zone, name) not in self._types:
            status, answer = self._call("GET", f"/zones/{zone}/machineTypes/{name}", unless=(404,))
            if status == 404:
                raise refused(RestCause.BAD_ORDER, f"there are no machines of type {name} in {zone}")
            self._types[zone, name] = answer
        return self._types[zone, name]

    def _look(self) -> list[SeenMachine]:
        seen = {each.provider_id: each for each in self._listed()}
        for provider_id, each in seen.items():
            if each.ended and not self._is_deleted(provider_id):
                seen[provider_id] = replace(each, ended=False)
        for provider_id, operation in list(self._under_way.items()):
            self._ask_after(provider_id, operation)
        for provider_id, operation in self._under_way.items():
            seen.setdefault(provider_id, operation.seen)
        now = time.monotonic()
        self._failed = {name: (each, until) for name, (each, until) in self._failed.items() if until > now}
        return list((seen | {name: each for name, (each, _) in self._failed.items()}).values())

    def _listed(self) -> list[SeenMachine]:
        pages = self._pages("/aggregated/instances", filter_of(self._cluster_id))
        return [
            seen_instance(instance, zone)
            for page in pages
            for zone, instance in of_zones(page, "instances", self._region)
        ]

    def _pages(self, path: str, chosen: str) -> Iterator[JsonObject]:
        """Of a list of the project, by a filter. Raises OrderRefused, ProviderAway."""
        options = {"filter": chosen, "maxResults": _MAX_PAGE}
        while True:
            _, page = self._call("GET", path, options)
            yield page
            if not page.get("nextPageToken"):
                return
            options["pageToken"] = str(page["nextPageToken"])

    def _is_deleted(self, provider_id: str) -> bool:
        """Delete what has stopped; whether the provider does."""
        try:
            self._delete(provider_id)
        except (OrderRefused, ProviderAway):
            return False
        return True

    def _ask_after(self, provider_id: str, operation: _Operation) -> None:
        """How an order goes; what has failed is told from now on."""
        status, answer = self._call("GET", f"/zones/{operation.zone}/operations/{operation.name}", unless=(404,))
        if status == 404 or answer.get("status") == "DONE":
            refusal = refusal_of_operation(answer)
            del self._under_way[provider_id]
            if refusal is None:
                return
            # Of one that is over and may succeed when it is sent again nothing is known to be wrong.
            cause, why = refusal.cause or RestCause.REFUSED, shown(refusal.words)
        elif time.monotonic() >= operation.given_up_at:
            self._delete(provider_id)
            del self._under_way[provider_id]
            waited = counted(round(operation.limit_s), "second")
            cause = RestCause.REFUSED
            why = f"the provider has not made it within {waited} (operation_timeout_period)"
        else:
            return
        failed = replace(operation.seen, ended=True, story=why, cause=cause)
        self._failed[provider_id] = failed, time.monotonic() + _TELL_S

    def _delete(self, provider_id: str) -> None:
        zone, _, name = provider_id.partition("/")
        self._call("DELETE", f"/zones/{zone}/instances/{name}", unless=(404,))

    def _call(
        self,
        method: str,
        path: str,
        options: Mapping[str, str] | None = None,
        body: JsonObject | None = None,
        unless: Sequence[int] = (),
        base: str = "",
        scope: str = _SCOPE,
    ) -> tuple[int, JsonObject]:
        """Status and answer; ``unless``: statuses that are no error. Raises OrderRefused, ProviderAway."""
        session = self._opened(scope)
        from google.auth.exceptions import GoogleAuthError
        from requests.exceptions import RequestException

        try:
            reply = session.request(
                method, f"{base or self._url}{path}", params=options, json=body, timeout=(_CONNECT_S, _ANSWER_S)
            )
            status, answer = reply.status_code, as_object(cast("JsonObject", reply.json()))
        except GoogleAuthError as error:
            raise ProviderAway(f"the credentials cannot be used ({error})") from None
        except (RequestException, ValueError) as error:
            raise ProviderAway(str(error)) from None
        if status < 400 or status in unless:
            return status, answer
        raise _error_of(refusal_of_answer(status, answer))

    def _opened(self, scope: str) -> _Session:
        if scope not in self._sessions:
            try:
                import google.auth
                from google.auth.transport import requests as transport
            except ImportError:
                raise ProviderAway(
                    "google-auth is not installed beside the master: pip install 'tenax[gcp]' there, and start it again"
                ) from None
            try:
                credentials, _ = google.auth.default(scopes=[scope])
            except google.auth.exceptions.GoogleAuthError as error:
                raise ProviderAway(f"there are no credentials that can be used ({error})") from None
            self._sessions[scope] = cast("_Session", cast("_Transport", transport).AuthorizedSession(credentials))
        return self._sessions[scope]


def _error_of(refusal: ProviderRefusal) -> OrderRefused | ProviderAway:
    if refusal.cause is None:
        return ProviderAway(refusal.words)
    return refused(refusal.cause, refusal.words, refusal.code)
