"""Where machines are rented at Google Cloud (Compute Engine): Determined's names for its provisioner.

A field of `base_config` that a setting of its own says is refused with that setting, as is whatever Compute Engine
would not take for a name or a label.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from tenax.config.provider import (
    MARKS,
    OfferChoice,
    ProviderSettings,
    RentingSettings,
    Seconds,
    needs_price,
    never_priced,
)
from tenax.config.provider.list_prices import GCP_FAMILIES, GCP_GPUS, ListPrice, gcp_list_price
from tenax.config.settings import Settings
from tenax.jsonvalue import Document

#: Of `base_config`: fields that are said by a setting of their own, or by nobody.
_SAID_BY: Mapping[str, str] = {
    "disks": "write boot_disk_size, boot_disk_type and boot_disk_source_image",
    "guestAccelerators": "write instance_type.gpu_type and instance_type.gpu_num",
    "labels": "write labels",
    "machineType": "write instance_type.machine_type",
    "name": "write name_prefix",
    "networkInterfaces": "write network_interface",
    "serviceAccounts": "write service_account",
    "tags": "write network_tags",
    "zone": "write zone or zones",
}
#: Of `base_config.scheduling`: what `instance_type` says.
_SCHEDULING = ("instanceTerminationAction", "onHostMaintenance", "preemptible", "provisioningModel")
#: Items of metadata that are ours.
STARTUP_SCRIPT, POOL_ITEM = "startup-script", f"{MARKS}pool"
#: Names that stand for an address of the master's own machine in Determined's `master_url`.
_ALIASES = frozenset({"internal-ip", "external-ip", "local-ipv4", "public-ipv4", "local-hostname", "public-hostname"})
_NAME = r"[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?"
_LABEL_KEY, _LABEL_VALUE = r"[a-z][-_a-z0-9]{0,62}", r"[-_a-z0-9]{0,63}"
_ZONE = r"[a-z]+-[a-z]+[0-9]+-[a-z]"
_MAX_LABELS = 60

_Zone = Annotated[str, Field(pattern=f"^{_ZONE}$")]
_NetworkTag = Annotated[str, Field(pattern=f"^{_NAME}$")]


class GcpInstanceType(Settings):
    """What is rented."""

    machine_type: str = Field(pattern=r"^[a-z0-9][-a-z0-9]*$")
    #: As ``nvidia-tesla-t4``; of a type that comes with its GPUs it may be left out.
    gpu_type: str = Field(default="", pattern=r"^[-a-z0-9]*$")
    #: The slots of a machine. The provider is asked whether a type that comes with GPUs has so many.
    gpu_num: int = Field(ge=0, le=64)
    #: A spot machine: cheaper, ended by the provider when it likes, and deleted then.
    preemptible: bool = False


class GcpNetworkInterfaceSettings(Settings):
    """Of each machine. Without both names it is the network ``default`` of the project."""

    #: ``projects/<project>/global/networks/<network>``
    network: str = ""
    #: ``projects/<project>/regions/<region>/subnetworks/<subnetwork>``
    subnetwork: str = ""
    external_ip: bool = False


class GcpServiceAccount(Settings):
    """Whose rights programs on the machine have; without an address none."""

    email: str = ""
    scopes: tuple[str, ...] = ("https://www.googleapis.com/auth/cloud-platform",)


class GcpSettings(RentingSettings):
    """Machines of one type in one region of a project at Google Cloud."""

    type: Literal["gcp"]
    project: str = Field(pattern=r"^[a-z0-9][-a-z0-9.:]*$")
    #: One, or several of one region: each is an offer of its own, behind the one before it.
    zone: Annotated[str, Field(pattern=f"^({_ZONE})?$")] = ""
    zones: tuple[_Zone, ...] = ()
    instance_type: GcpInstanceType
    #: Into how many slots the CPU is cut, with ``cpu_slots_allowed``.
    cpu_slots: int = Field(default=1, ge=1, le=64)
    #: In GB.
    boot_disk_size: int = Field(default=200, ge=100, le=65536)
    boot_disk_type: str = Field(default="pd-standard", pattern=r"^[a-z][-a-z0-9]*$")
    #: ``projects/<project>/global/images/<image>``, or ``.../images/family/<family>``.
    boot_disk_source_image: str = Field(min_length=1)
    #: A label that all of them carry, for people; Tenax knows its own by labels that it adds.
    label_key: str = Field(default="managed-by", pattern=f"^{_LABEL_KEY}$")
    label_value: str = Field(default="tenax", pattern=f"^{_LABEL_VALUE}$")
    labels: dict[str, str] = Field(default_factory=dict)
    name_prefix: str = Field(default="tenax-agent-", max_length=30, pattern=r"^([a-z][-a-z0-9]*)?$")
    network_interface: GcpNetworkInterfaceSettings = GcpNetworkInterfaceSettings()
    network_tags: tuple[_NetworkTag, ...] = ()
    service_account: GcpServiceAccount = GcpServiceAccount()
    #: An order that the provider has not carried out after so long is given up.
    operation_timeout_period: Seconds = 300.0
    #: An instance as Compute Engine's API writes it, over which all of the above is laid.
    base_config: Document = Field(default_factory=dict)

    @property
    def places(self) -> tuple[str, ...]:
        """The zones, in their order."""
        return (self.zone,) if self.zone else self.zones

    @property
    def region(self) -> str:
        """What one look covers: ``my-project/us-central1``."""
        return f"{self.project}/{self.places[0].rpartition('-')[0]}"

    @property
    def instance_slots(self) -> int:
        """Slots that a machine has."""
        return self.cpu_slots if self.cpu_slots_allowed else self.instance_type.gpu_num

    @property
    def type_name(self) -> str:
        """For people."""
        its = self.instance_type
        gpus = f" with {its.gpu_num} {its.gpu_type}" if its.gpu_type and its.gpu_num else ""
        return f"{its.machine_type}{gpus}{' (spot)' if its.preemptible else ''}"

    @property
    def offer_name(self) -> str:
        """Of settings that are one offer: what it is called."""
        return f"{self.type_name} in {self.places[0]}"

    @property
    def offer_family(self) -> str:
        """Its name without the zone."""
        return f"{self.type_name} in {self.region}"

    @property
    def list_price(self) -> ListPrice | None:
        """On demand."""
        its, region = self.instance_type, self.region.rpartition("/")[2]
        return None if its.preemptible else gcp_list_price(region, its.machine_type, its.gpu_type, its.gpu_num)

    @property
    def may_be_asked(self) -> bool:
        """For prices of what it is known to call by which names."""
        its = self.instance_type
        family, _, rest = its.machine_type.partition("-")
        is_other = rest.startswith(("custom", "megamem", "ultramem"))
        return family in GCP_FAMILIES and not is_other and (not its.gpu_type or its.gpu_type in GCP_GPUS)

    @property
    def key_file(self) -> tuple[str, str]:
        """Of google-auth."""
        return "GOOGLE_APPLICATION_CREDENTIALS", "~/.config/gcloud/application_default_credentials.json"

    @property
    def choose(self) -> OfferChoice:
        """All zones cost the same."""
        return OfferChoice.FIRST

    def each_offer(self) -> tuple[GcpSettings, ...]:
        """Zone by zone, each with all of its settings."""
        return tuple(self.model_copy(update={"zone": zone, "zones": ()}) for zone in self.places)

    @field_validator("labels")
    @classmethod
    def _are_labels(cls, given: dict[str, str]) -> dict[str, str]:
        wrong = sorted(key for key, value in given.items() if not _is_label(key, value))
        if wrong or len(given) > _MAX_LABELS:
            raise ValueError(
                f"labels cannot be {', '.join(wrong) or 'so many'}: keys and values have small letters, digits, - and "
                f"_, at most 63 of them, a key begins with a letter and not with {MARKS}, and there may be "
                f"{_MAX_LABELS}"
            )
        return given

    @field_validator("base_config")
    @classmethod
    def _leaves_alone(cls, given: Document) -> Document:
        for name in sorted(given.keys() & _SAID_BY.keys()):
            raise ValueError(f"{name} cannot stand in base_config: {_SAID_BY[name]}")
        scheduling, metadata = given.get("scheduling", {}), given.get("metadata", {})
        if not isinstance(scheduling, dict) or not isinstance(metadata, dict):
            raise ValueError("scheduling and metadata of base_config are objects")
        if wrong := [name for name in _SCHEDULING if name in scheduling]:
            raise ValueError(f"scheduling.{wrong[0]} cannot stand in base_config: write instance_type.preemptible")
        items = metadata.get("items", [])
        if not isinstance(items, list) or not all(isinstance(item, dict) and "key" in item for item in items):
            raise ValueError("metadata.items of base_config is a list of {key, value}")
        if any(item["key"] in (STARTUP_SCRIPT, POOL_ITEM) for item in items if isinstance(item, dict)):
            raise ValueError(f"{STARTUP_SCRIPT} and {POOL_ITEM} cannot stand in base_config: write startup_script")
        return given

    @model_validator(mode="after")
    def _is_one_place(self) -> Self:
        if bool(self.zone) == bool(self.zones):
            raise ValueError("write either zone or zones: where machines are rented")
        if len(set(self.zones)) < len(self.zones) or len({zone.rpartition("-")[0] for zone in self.places}) > 1:
            raise ValueError(f"zones ({', '.join(self.zones)}) are different ones of one region: make a pool for each")
        if self.label_key.startswith(MARKS) or self.label_key in self.labels:
            raise ValueError(
                f"label_key cannot be {self.label_key}: {MARKS}... has a meaning of its own, or labels has it"
            )
        if never_priced(self) and (needs := needs_price(self)):
            raise ValueError(f"the offer {self.offer_name} has no price, which {needs} needs: write price")
        if self.max_run is not None and self.max_run < 30:
            raise ValueError("max_run must be 30s at least, which Google Cloud asks for")
        scheduling = self.base_config.get("scheduling")
        if self.max_run is not None and isinstance(scheduling, dict) and "maxRunDuration" in scheduling:
            raise ValueError("max_run and base_config.scheduling.maxRunDuration say the same: leave the second out")
        if not 1 <= self.operation_timeout_period <= 86400:
            raise ValueError("operation_timeout_period must be between 1s and 1d")
        if (urlsplit(self.master_url).hostname or "") in _ALIASES:
            raise ValueError(f"master_url is {self.master_url}: write the master's address itself, no name for it")
        its = self.instance_type
        if self.cpu_slots_allowed and (its.gpu_num or its.gpu_type):
            raise ValueError("cpu_slots_allowed is for machines without GPUs: leave it out, or set gpu_num to 0")
        if its.gpu_type and not its.gpu_num:
            raise ValueError("instance_type.gpu_num is 0 and gpu_type is not empty: how many are there?")
        return self


#: The settings of any provider.
AnyProviderSettings = ProviderSettings | GcpSettings


def _is_label(key: str, value: str) -> bool:
    fits = re.fullmatch(_LABEL_KEY, key) and re.fullmatch(_LABEL_VALUE, value)
    return fits is not None and not key.startswith(MARKS)
