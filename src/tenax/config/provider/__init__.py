"""Where the machines of a pool are rented, and how many: Determined's names for its provisioner.

What is not done yet is refused with what to do instead, and nothing is ignored. Durations are seconds, written as in
``20m``.
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
from collections.abc import Mapping
from enum import Enum
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, field_validator, model_validator

from tenax.config.durations import parse_duration
from tenax.config.problems import Path, ProblemReport
from tenax.config.provider.agent_install import AgentInstallSettings
from tenax.config.provider.list_prices import ListPrice, aws_list_price
from tenax.config.settings import Settings
from tenax.jsonvalue import JsonObject
from tenax.lifecycle.notice import Rebalance

#: Of Determined's fields, and what to write instead for now.
NOT_YET: Mapping[str, str] = {
    "agent_config_file_contents": "let startup_script write /var/lib/tenax/agent.yaml, which the agent is started with",
    "agent_docker_image": "the tenax of the machine's own image is started, else the master's own is installed",
    "agent_docker_network": "the agent runs on the machine itself, in no container",
    "agent_docker_runtime": "the agent runs on the machine itself, in no container",
    "agent_fluent_image": "nothing of it is needed: agents send output themselves",
    "agent_reconnect_attempts": "agents try again without end",
    "agent_reconnect_backoff": "agents try again without end",
    "container_startup_script": "use task_container_defaults.startup_hook of the pool",
    "launch_error_retries": "what was refused is asked for again, after one minute at first and thirty at most",
    "launch_error_timeout": "what was refused is asked for again, after one minute at first and thirty at most",
    "log_group": "the agent's log stays on its machine",
    "log_stream": "the agent's log stays on its machine",
    "master_cert_name": "use a certificate of the name in master_url, which the machine's image trusts",
    "use_cloud_logging": "what tasks print is kept by the master",
}
#: Settings of another provider, or that this one has in other words.
_ELSEWHERE: Mapping[str, Mapping[str, str]] = {
    "gcp": {
        "choose": "all zones cost the same, and are taken in their order",
        "offers": "machines of a pool are of one type: write another pool for another type, or zones for other places",
        "spot": "write instance_type.preemptible",
        "spot_max_price": "Google Cloud sets the price of spot machines, and takes no limit",
    }
}
#: What `type` can be.
KINDS = ("aws", "gcp")
#: A user data of AWS has 16 kB, of which our own script takes its part.
MAX_STARTUP_SCRIPT_BYTES = 8_700
#: What our own tags begin with, and the one that all of a cluster's machines carry.
MARKS = "tenax-"
CLUSTER_MARK = f"{MARKS}cluster"
_MAX_TAGS = 40
#: What no order of a machine depends on.
_NOT_ORDERED = {
    "zone", "zones", "price", "max_price", "offers", "choose", "rule", "scaling", "min_instances", "max_instances",
    "max_cost_per_hour", "max_idle_agent_period", "budget_per_month", "budget_stops",
}  # fmt: skip


def _seconds(given: object) -> object:
    """``20m`` in seconds; a number is that of seconds, as everywhere in these settings."""
    if isinstance(given, int) and not isinstance(given, bool):
        raise ValueError(f"{given} has no unit: write {given}s, {given}m or {given}h")
    return parse_duration(given) if isinstance(given, str) else given


Seconds = Annotated[float, BeforeValidator(_seconds)]


def _price(given: object) -> object:
    """Determined writes it in quotes."""
    try:
        return float(given) if isinstance(given, str) else given
    except ValueError:
        raise ValueError(f"{given!r} is no price: write a number, per hour") from None


Price = Annotated[float, BeforeValidator(_price), Field(gt=0, allow_inf_nan=False)]


class ScalingRule(str, Enum):
    """How many machines there are to be."""

    #: As many as the scheduler would use, were they there.
    PLANNER = "planner"
    #: As many as Determined starts: by the slots of what waits, whatever is free.
    DETERMINED = "determined"


class ScalingMode(str, Enum):
    """What the master does by itself with the machines of a pool."""

    #: It rents and ends them.
    RENT = "rent"
    #: It says what it would rent and end; people do it.
    ADVISE = "advise"


class NetworkInterfaceSettings(Settings):
    """Of each machine."""

    public_ip: bool = True
    subnet_id: str = ""
    security_group_id: str = ""


class Tag(Settings):
    """What a person has machines tagged with."""

    key: str = Field(min_length=1, max_length=128)
    value: str = Field(default="", max_length=256)


class OfferChoice(str, Enum):
    """Which of several offers is taken."""

    #: The first listed that serves the most urgent of what waits.
    FIRST = "first"
    #: What serves the same and costs least per hour.
    CHEAPEST = "cheapest"


class OfferSettings(Settings):
    """One of several kinds of machines for a pool; what it does not say is as the pool says."""

    instance_type: str | None = Field(default=None, min_length=1)
    instance_slots: int | None = Field(default=None, ge=0, le=64)
    image_id: str | None = Field(default=None, min_length=1)
    zones: tuple[str, ...] | None = None
    spot: bool | None = None
    spot_max_price: Price | None = None
    network_interface: NetworkInterfaceSettings | None = None
    price: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    max_price: float | None = Field(default=None, ge=0, allow_inf_nan=False)


class MonthlyBudgetSettings(Settings):
    """What may be spent on machines in a month (in UTC), by their prices."""

    #: Once it is spent nothing more is rented until the next month. None: no end.
    budget_per_month: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    #: Whether machines that are there take nothing new then, and what can be preempted is asked to save and leave.
    budget_stops: bool = False

    @model_validator(mode="after")
    def _stops_at_something(self) -> Self:
        if self.budget_stops and self.budget_per_month is None:
            raise ValueError("budget_stops says what follows once budget_per_month is spent: write that, too")
        return self


class RentingSettings(MonthlyBudgetSettings):
    """What is said of machines whoever rents them out."""

    #: Where machines reach the master: ``https://master.example.org``.
    master_url: str
    #: Where the provider's API is, if not at its usual place.
    endpoint_url: str = ""
    #: Of one machine per hour; none: that which the provider says, or lists.
    price: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    #: An offer that costs more is not used.
    max_price: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    cpu_slots_allowed: bool = False
    #: Shell lines that run on the machine, as root, before its agent starts.
    startup_script: str = ""
    #: With what the master's own tenax is installed on a machine whose image has none.
    agent_install: AgentInstallSettings = AgentInstallSettings()
    rule: ScalingRule = Field(default=ScalingRule.PLANNER, strict=False)
    scaling: ScalingMode = Field(default=ScalingMode.RENT, strict=False)
    min_instances: int = Field(default=0, ge=0)
    max_instances: int = Field(default=5, ge=1, le=1000)
    #: Of all machines of the pool together.
    max_cost_per_hour: float | None = Field(default=None, gt=0)
    #: After how long without work a machine is ended.
    max_idle_agent_period: Seconds = 1200.0
    #: A machine whose agent has not joined after so long is ended.
    max_agent_starting_period: Seconds = 1200.0
    #: A machine that hears no master powers itself off after so long, once nothing runs there.
    orphan_after: Seconds = 1800.0
    #: The same, whatever runs there; it is asked to save some minutes before.
    orphan_busy_after: Seconds = 86400.0
    #: So long a machine lives at most; its work is asked to save some minutes before. None: no limit.
    max_run: Seconds | None = None
    #: False: tasks cannot ask the metadata service, which gives the machine's own rights to whoever asks.
    tasks_see_metadata: bool = True
    #: What follows where the cloud says that a machine is more likely than others to be taken back.
    rebalance: Rebalance = Field(default=Rebalance.IGNORE, strict=False)

    @property
    def advises(self) -> bool:
        """Whether it is only said what would be rented and ended."""
        return self.scaling is ScalingMode.ADVISE

    @property
    def list_price(self) -> ListPrice | None:
        """Of settings that are one offer: what a public list says; None: there is none."""
        return None

    @property
    def may_be_asked(self) -> bool:
        """Whether the provider is asked for what is not written."""
        return False

    @property
    def key_file(self) -> tuple[str, str]:
        """Where the provider's library looks for a key: the variable, and the file where it is not set."""
        raise NotImplementedError

    @property
    def offer_settings(self) -> bytes:
        """Of what an order is made, zones left out: what went wrong with others may go well with these."""
        own = self.model_dump_json(exclude=_NOT_ORDERED)
        return hashlib.sha256(own.encode()).digest()

    @field_validator("master_url", "endpoint_url")
    @classmethod
    def _is_url(cls, given: str) -> str:
        parts = urlsplit(given)
        if given and (parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc):
            raise ValueError("write a whole address without a password: https://master.example.org")
        # Line breaks are left out when an address is taken apart, and would end a text of the machine's script.
        if not given.isprintable() or " " in given:
            raise ValueError("write an address without blanks and line breaks")
        return given.rstrip("/")

    @field_validator("startup_script")
    @classmethod
    def _is_small(cls, given: str) -> str:
        if "TENAX_END_OF_STARTUP" in given or "\0" in given:
            raise ValueError("it cannot hold TENAX_END_OF_STARTUP, which is where it ends")
        size = len(given.encode())
        if size > MAX_STARTUP_SCRIPT_BYTES:
            raise ValueError(f"it has {size} bytes, and {MAX_STARTUP_SCRIPT_BYTES} are possible: let it fetch the rest")
        return given

    @model_validator(mode="after")
    def _fits_into_user_data(self) -> Self:
        size = len(self.startup_script.encode())
        room = MAX_STARTUP_SCRIPT_BYTES - self.agent_install.size + AgentInstallSettings().size
        if size > room:
            raise ValueError(
                f"startup_script has {size} bytes, and {room} are possible beside agent_install: let it fetch the rest"
            )
        return self

    @model_validator(mode="after")
    def _hangs_together(self) -> Self:
        if self.min_instances > self.max_instances:
            raise ValueError(
                f"min_instances is {self.min_instances} and max_instances {self.max_instances}: lower one or raise the "
                "other"
            )
        for name in ("max_idle_agent_period", "max_agent_starting_period"):
            if not 1 <= getattr(self, name) <= 30 * 86400:
                raise ValueError(f"{name} must be between 1s and 30d")
        if self.max_run is not None and not 1 <= self.max_run <= 30 * 86400:
            raise ValueError("max_run must be between 1s and 30d")
        if self.max_run is not None and self.max_run < 2 * self.max_agent_starting_period:
            raise ValueError(
                f"max_run is {self.max_run:g} s and max_agent_starting_period {self.max_agent_starting_period:g} s, by "
                "which a machine could be gone before it has worked, and another be rented: write twice that at least"
            )
        for name in ("orphan_after", "orphan_busy_after"):
            if not 1 <= getattr(self, name) <= 86400:
                raise ValueError(f"{name} must be between 1s and 24h")
        if self.orphan_busy_after < self.orphan_after:
            raise ValueError(
                f"orphan_busy_after is {self.orphan_busy_after:g} s and orphan_after {self.orphan_after:g} s: what is "
                "busy cannot be given up before what is idle; raise the first or lower the second"
            )
        if not self.master_url:
            raise ValueError("master_url is missing: write where machines reach the master")
        if is_own_address(self.master_url) and not is_own_address(self.endpoint_url):
            raise ValueError(
                f"master_url is {self.master_url}, which is the machine itself for every machine: write an address of "
                "the master that they reach"
            )
        return self


class ProviderSettings(RentingSettings):
    """Machines for a pool at AWS: of one type, or of several offers in their order."""

    type: Literal["aws"]
    region: str = Field(min_length=1)
    image_id: str = Field(min_length=1)
    #: With ``offers`` that of those that name none.
    instance_type: str = ""
    #: Slots that a machine of this type has: its GPUs, for which the provider is asked where it is left out; with
    #: ``cpu_slots_allowed`` into how many its CPU is cut.
    instance_slots: int = Field(default=-1, ge=-1, le=64)
    #: At the price of the moment, taken back when the provider needs it; else on demand.
    spot: bool = False
    #: The most that is paid for such a machine per hour; none: what one on demand costs.
    spot_max_price: Price | None = None
    #: One after the other; none: the provider chooses.
    zones: tuple[str, ...] = ()
    #: In their order; none: there is one, and it is as all else here says.
    offers: tuple[OfferSettings, ...] = Field(default=(), max_length=20)
    choose: OfferChoice = Field(default=OfferChoice.FIRST, strict=False)
    #: Of the image, as AWS calls its disk: ``/dev/sda1`` of Ubuntu's, ``/dev/xvda`` of Amazon Linux.
    root_device_name: str = Field(default="/dev/sda1", min_length=1)
    #: In GB.
    root_volume_size: int = Field(default=200, ge=100, le=16384)
    #: A tag that all of them carry, for people; Tenax knows its own by tags that it adds.
    tag_key: str = Field(default="managed_by", min_length=1, max_length=128)
    tag_value: str = Field(default="tenax", max_length=256)
    custom_tags: tuple[Tag, ...] = ()
    instance_name: str = Field(default="tenax-agent", max_length=256)
    ssh_key_name: str = ""
    network_interface: NetworkInterfaceSettings = NetworkInterfaceSettings()
    iam_instance_profile_arn: str = ""

    @property
    def offer_name(self) -> str:
        """Of settings that are one offer: what it is called."""
        return f"{self._what} in {self.zones[0] if self.zones else self.region}"

    @property
    def offer_family(self) -> str:
        """Its name without the zone."""
        return f"{self._what} in {self.region}"

    @property
    def type_name(self) -> str:
        """For people."""
        return self.instance_type

    @property
    def list_price(self) -> ListPrice | None:
        """On demand."""
        return None if self.spot else aws_list_price(self.region, self.instance_type)

    @property
    def key_file(self) -> tuple[str, str]:
        """Of boto3."""
        return "AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials"

    @property
    def may_be_asked(self) -> bool:
        """For prices, of spot machines and on demand, and for slots."""
        return True

    @property
    def _what(self) -> str:
        return f"{self.instance_type} (spot)" if self.spot else self.instance_type

    def each_offer(self) -> tuple[ProviderSettings, ...]:
        """The offers in their order, each with all of its settings, zone by zone."""
        return tuple(
            whole.model_copy(update={"zones": (zone,) if zone else ()})
            for whole in self.whole_offers()
            for zone in whole.zones or ("",)
        )

    def whole_offers(self) -> tuple[ProviderSettings, ...]:
        """The same with all zones of an offer in one, as they are written."""
        return tuple(
            self.model_copy(update={**{name: value for name, value in offer if value is not None}, "offers": ()})
            for offer in self.offers or (OfferSettings(),)
        )

    def path_of(self, index: int, name: str) -> str:
        """Where a setting of one of the offers, as they are written, stands: in the offer, or for all beside them."""
        top = name.partition(".")[0]
        is_own = bool(self.offers) and getattr(self.offers[index], top, None) is not None
        return f"offers[{index}].{name}" if is_own else name

    @model_validator(mode="after")
    def _is_an_order(self) -> Self:
        _check_offers(self)
        keys = [self.tag_key, *(tag.key for tag in self.custom_tags)]
        wrong = [key for key in keys if key.startswith(MARKS) or key.lower().startswith("aws:") or key == "Name"]
        wrong += [key for key in keys if keys.count(key) > 1]
        if wrong or len(keys) > _MAX_TAGS:
            raise ValueError(
                f"tags cannot be called {', '.join(sorted(set(wrong))) or 'so many'}: Name, aws:... and {MARKS}... "
                f"have a meaning of their own, each key may stand there once, and there may be {_MAX_TAGS} of them"
            )
        return self


def _check_offers(provider: ProviderSettings) -> None:
    """Raises ValueError."""
    offers = provider.each_offer()
    for offer in offers:
        where = "an offer" if provider.offers else "provider"
        if not offer.instance_type:
            raise ValueError(f"instance_type is missing: write it in {where}, or once for all beside offers")
        if offer.instance_slots < 0 and offer.cpu_slots_allowed:
            raise ValueError(
                f"instance_slots is missing, which says into how many slots the CPU of {offer.instance_type} is cut: "
                f"write it in {where}, or once for all beside offers"
            )
        if foreign := [zone for zone in offer.zones if not zone.startswith(offer.region) or zone == offer.region]:
            raise ValueError(
                f"zones has {', '.join(foreign)}, which is no zone of {offer.region}: write zones of that region, as "
                f"in {offer.region}a"
            )
        if offer.zones and offer.network_interface.subnet_id:
            raise ValueError(
                f"the offer {offer.offer_name} has zones and a subnet_id, which is in one zone: write an offer for "
                "each subnet, and leave zones out"
            )
        if offer.spot_max_price is not None and not offer.spot:
            raise ValueError(f"the offer {offer.offer_name} has a spot_max_price and is on demand: write spot: true")
    names = [offer.offer_name for offer in offers]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"offers stand there twice: {', '.join(twice)}")


def needs_price(settings: RentingSettings) -> str:
    """The first setting of an offer that means nothing without its price; empty: there is none."""
    names = ("max_price", "max_cost_per_hour", "budget_per_month")
    return next((name for name in names if getattr(settings, name) is not None), "")


def never_priced(offer: RentingSettings) -> bool:
    """Whether nobody will ever know what an offer costs: it is not written, not listed, and no provider is asked."""
    return offer.price is None and offer.list_price is None and not offer.may_be_asked


def refuse_what_is_not_yet(pool: JsonObject, at: Path, report: ProblemReport) -> None:
    """Tell of what a pool says of machines that has no effect here yet, and take it out: it is told once."""
    provider, at = pool.get("provider"), (*at, "provider")
    if not isinstance(provider, dict):
        return
    if provider.get("type") not in KINDS:
        given = f"machines of type {provider['type']} cannot be rented yet" if "type" in provider else "it is missing"
        report.add((*at, "type"), f"{given}: type can be {' or '.join(KINDS)}")
        del pool["provider"]
        return
    elsewhere = _ELSEWHERE.get(str(provider["type"]), {})
    for name in [name for name in provider if name in NOT_YET or name in elsewhere]:
        if name in elsewhere:
            report.add((*at, name), f"cannot be written for {provider['type']}: {elsewhere[name]}")
        else:
            report.add((*at, name), f"has no effect yet: {NOT_YET[name]}; leave it out")
        del provider[name]


def is_own_address(url: str) -> bool:
    """Whether an address means, to whoever uses it, the machine that they are on."""
    host = (urlsplit(url).hostname or "").rstrip(".")
    if re.fullmatch(r"[0-9.]+|.*:.*", host):
        try:
            address = ipaddress.ip_address(host)
            address = getattr(address, "ipv4_mapped", None) or address
            return address.is_loopback or address.is_unspecified
        except ValueError:
            # Short forms: 127.1.
            return host.startswith("127.")
    return host == "localhost" or host.endswith(".localhost")
