"""Where the machines of a pool are rented, and how many: Determined's names for its provisioner.

What is not done yet is refused with what to do instead, and nothing is ignored. Durations are seconds, written as in
``20m``.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from enum import Enum
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, field_validator, model_validator

from tenax.config.durations import parse_duration
from tenax.config.problems import Path, ProblemReport
from tenax.config.settings import Settings
from tenax.jsonvalue import JsonObject

#: Of Determined's fields, and what to write instead for now.
NOT_YET: Mapping[str, str] = {
    "agent_config_file_contents": "write what the agent needs in startup_script, as TENAX_AGENT_... variables",
    "agent_docker_image": "the agent of the machine's own image is started: install tenax there",
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
    "spot": "machines are rented on demand only",
    "spot_max_price": "machines are rented on demand only",
}
#: Kinds of Determined's that are not there yet.
_OTHER_KINDS = ("gcp", "hpc")
#: A user data of AWS has 16 kB, of which our own script takes its part.
MAX_STARTUP_SCRIPT_BYTES = 10_000
#: What our own tags begin with.
MARKS = "tenax-"
_MAX_TAGS = 40


def _seconds(given: object) -> object:
    """``20m`` in seconds; a number is that of seconds, as everywhere in these settings."""
    return parse_duration(given) if isinstance(given, str) else given


Seconds = Annotated[float, BeforeValidator(_seconds)]


class ScalingRule(str, Enum):
    """How many machines there are to be."""

    #: As many as the scheduler would use, were they there.
    PLANNER = "planner"
    #: As many as Determined starts: by the slots of what waits, whatever is free.
    DETERMINED = "determined"


class NetworkInterfaceSettings(Settings):
    """Of each machine."""

    public_ip: bool = True
    subnet_id: str = ""
    security_group_id: str = ""


class Tag(Settings):
    """What a person has machines tagged with."""

    key: str = Field(min_length=1, max_length=128)
    value: str = Field(default="", max_length=256)


class ProviderSettings(Settings):
    """Machines of one type at one provider."""

    type: Literal["aws"]
    #: Where machines reach the master: ``https://master.example.org``.
    master_url: str
    #: Where the provider's API is, if not at its usual place.
    endpoint_url: str = ""
    region: str = Field(min_length=1)
    image_id: str = Field(min_length=1)
    instance_type: str = Field(min_length=1)
    #: Slots that a machine of this type has: its GPUs; with ``cpu_slots_allowed`` into how many its CPU is cut.
    instance_slots: int = Field(ge=0, le=64)
    cpu_slots_allowed: bool = False
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
    #: Shell lines that run on the machine, as root, before its agent starts.
    startup_script: str = ""
    rule: ScalingRule = Field(default=ScalingRule.PLANNER, strict=False)
    min_instances: int = Field(default=0, ge=0)
    max_instances: int = Field(default=5, ge=1, le=1000)
    #: After how long without work a machine is ended.
    max_idle_agent_period: Seconds = 1200.0
    #: A machine whose agent has not joined after so long is ended.
    max_agent_starting_period: Seconds = 1200.0

    @field_validator("master_url", "endpoint_url")
    @classmethod
    def _is_url(cls, given: str) -> str:
        parts = urlsplit(given)
        if given and (parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc):
            raise ValueError("write a whole address without a password: https://master.example.org")
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
    def _hangs_together(self) -> ProviderSettings:
        if self.min_instances > self.max_instances:
            raise ValueError(
                f"min_instances is {self.min_instances} and max_instances {self.max_instances}: lower one or raise the "
                "other"
            )
        for name in ("max_idle_agent_period", "max_agent_starting_period"):
            if not 1 <= getattr(self, name) <= 30 * 86400:
                raise ValueError(f"{name} must be between 1s and 30d")
        if not self.master_url:
            raise ValueError("master_url is missing: write where machines reach the master")
        if _is_loopback(self.master_url) and not _is_loopback(self.endpoint_url):
            raise ValueError(
                f"master_url is {self.master_url}, which is the machine itself for every machine: write an address of "
                "the master that they reach"
            )
        keys = [self.tag_key, *(tag.key for tag in self.custom_tags)]
        wrong = [key for key in keys if key.startswith((MARKS, "aws:")) or key == "Name"]
        wrong += [key for key in keys if keys.count(key) > 1]
        if wrong or len(keys) > _MAX_TAGS:
            raise ValueError(
                f"tags cannot be called {', '.join(sorted(set(wrong))) or 'so many'}: Name, aws:... and {MARKS}... "
                f"have a meaning of their own, each key may stand there once, and there may be {_MAX_TAGS} of them"
            )
        return self


def refuse_what_is_not_yet(pool: JsonObject, at: Path, report: ProblemReport) -> None:
    """Tell of what a pool says of machines that has no effect here yet, and take it out: it is told once."""
    provider, at = pool.get("provider"), (*at, "provider")
    if not isinstance(provider, dict):
        return
    if provider.get("type") in _OTHER_KINDS:
        report.add((*at, "type"), f"machines of type {provider['type']} cannot be rented yet: type can be aws")
        del pool["provider"]
        return
    for name in [name for name in provider if name in NOT_YET]:
        report.add((*at, name), f"has no effect yet: {NOT_YET[name]}; leave it out")
        del provider[name]


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    if re.fullmatch(r"[0-9.]+|.*:.*", host):
        try:
            address = ipaddress.ip_address(host)
            return address.is_loopback or address.is_unspecified
        except ValueError:
            # Short forms: 127.1.
            return host.startswith("127.")
    return host == "localhost" or host.endswith(".localhost")
