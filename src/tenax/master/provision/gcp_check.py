"""What of a pool's settings is not so at Compute Engine: asked by calls that describe, before anything is rented.

Rules: nothing is made; what the master's account may not look at is told with the right that would let it. The API has
no dry run of an order: rights on the image and the subnetwork are asked for, those on machines show with the first one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tenax.config.provider.gcp import GcpSettings
from tenax.jsonvalue import Json, JsonObject, as_list, as_object
from tenax.lifecycle.offer import RestCause
from tenax.master.provision.gcp_instances import misfit
from tenax.master.provision.port import OrderRefused, ProviderFinding, shown

_API = "/compute/v1/"
#: Of both sides, what stands for the processor that most have.
_USUAL = "X86_64"
_IMAGE, _SUBNET, _TYPE = "boot_disk_source_image", "network_interface.subnetwork", "instance_type.machine_type"


class AskFor(Protocol):
    """One call: method, path below the version, body. Raises OrderRefused, ProviderAway."""

    def __call__(self, method: str, path: str, body: JsonObject | None = None) -> JsonObject: ...


def findings(settings: GcpSettings, ask_for: AskFor) -> Sequence[ProviderFinding]:
    """All of them. Raises ProviderAway."""
    look = _Look(settings, ask_for)
    architectures = [look.at_type(zone) for zone in settings.places]
    look.at_image({each for each in architectures if each})
    look.at_network()
    return tuple(dict.fromkeys(look.findings))


@dataclass(slots=True)
class _Look:
    """One look at all that settings name. Mutable; one call owns it."""

    settings: GcpSettings
    ask_for: AskFor
    findings: list[ProviderFinding] = field(default_factory=list)

    def find(self, path: str, problem: str, instead: str) -> None:
        self.findings.append(ProviderFinding(path, problem, instead))

    def described(self, path: str, right: str, where: str, absent: str, instead: str) -> JsonObject | None:
        """What is there; None, and a finding, where it is not, or nobody may look. ``where``: its path in the API."""
        try:
            return self.ask_for("GET", where)
        except OrderRefused as refused:
            if refused.cause is RestCause.BAD_ORDER:
                self.find(path, absent, instead)
            else:
                problem = f"nobody could look at it: {shown(str(refused))}"
                self.find(path, problem, f"allow {right}, or look yourself")
            return None

    def at_type(self, zone: str) -> str:
        """Whether machines of the type are in a zone, with the GPUs that are to be added; its architecture."""
        its, of_zone = self.settings.instance_type, f"projects/{self.settings.project}/zones/{zone}"
        described = self.described(
            _TYPE, "compute.machineTypes.get", f"{of_zone}/machineTypes/{its.machine_type}",
            f"there are no machines of type {its.machine_type} in {zone}", "write a type, or zones, that Google has",
        )  # fmt: skip
        if described is None:
            return ""
        if (why := misfit(self.settings, described)) is not None:
            problem, _, instead = why.partition(": ")
            self.find("instance_type", problem, instead)
        if its.gpu_type and its.gpu_num and not as_list(described.get("accelerators")):
            self._at_gpu(zone, f"{of_zone}/acceleratorTypes/{its.gpu_type}")
        return str(described.get("architecture") or _USUAL)

    def _at_gpu(self, zone: str, where: str) -> None:
        its = self.settings.instance_type
        described = self.described(
            "instance_type.gpu_type", "compute.acceleratorTypes.get", where,
            f"there are no {its.gpu_type} in {zone}", "write a gpu_type, or zones, that Google has",
        )  # fmt: skip
        at_once = None if described is None else described.get("maximumCardsPerInstance")
        if isinstance(at_once, int) and its.gpu_num > at_once:
            problem = f"a machine takes at most {at_once} {its.gpu_type}, and gpu_num is {its.gpu_num}"
            self.find("instance_type.gpu_num", problem, f"write {at_once}, or fewer")

    def at_image(self, architectures: set[str]) -> None:
        """Whether the image is there, may be used, and fits the type and the disk."""
        name = self.settings.boot_disk_source_image
        where = _path_of(name, self.settings.project)
        image = self.described(
            _IMAGE, "compute.images.get", where, f"there is no image {name}",
            "write it as in projects/my-project/global/images/tenax, or .../images/family/NAME",
        )  # fmt: skip
        if image is None:
            return
        own = str(image.get("architecture") or _USUAL)
        for other in sorted(architectures - {own}):
            problem = f"the image is for {own}, and {self.settings.instance_type.machine_type} has {other}"
            self.find(_IMAGE, problem, f"write an image for {other}, or another machine_type")
        size = image.get("diskSizeGb")
        if isinstance(size, str) and size.isdecimal() and int(size) > self.settings.boot_disk_size:
            self.find("boot_disk_size", f"the image needs a disk of {size} GB", f"write {size}, or more")
        resource = f"{where.rpartition('/images/')[0]}/images/{image.get('name', '')}"
        self._may(_IMAGE, resource, ["compute.images.useReadOnly"])

    def at_network(self) -> None:
        """Whether the subnetwork is there, of the region, and leads out."""
        network = self.settings.network_interface
        project, _, region = self.settings.region.rpartition("/")
        if network.subnetwork:
            where = _path_of(network.subnetwork, project)
            if f"/regions/{region}/" not in where:
                problem = f"{network.subnetwork} is of another region than the zones, which are in {region}"
                instead = f"write one as in projects/{project}/regions/{region}/subnetworks/NAME"
                self.find(_SUBNET, problem, instead)
                return
            absent = f"there is no subnetwork {network.subnetwork}"
            if self.described(_SUBNET, "compute.subnetworks.get", where, absent, "write one that is there") is None:
                return
            rights = ["compute.subnetworks.use"]
            self._may(_SUBNET, where, [*rights, *["compute.subnetworks.useExternalIp"] * network.external_ip])
        if not network.external_ip:
            self._at_way_out(project, region)

    def _at_way_out(self, project: str, region: str) -> None:
        path = "network_interface.external_ip"
        routers = self.described(
            path, "compute.routers.list", f"projects/{project}/regions/{region}/routers", "", ""
        )  # fmt: skip
        if routers is None:
            return
        if not any(as_list(as_object(each).get("nats")) for each in as_list(routers.get("items"))):
            self.find(
                path, f"no router of {region} has a NAT, and machines have no external address: they reach neither an "
                "index nor a master elsewhere", "write external_ip: true, or give the network a Cloud NAT",
            )  # fmt: skip

    def _may(self, path: str, resource: str, rights: Sequence[str]) -> None:
        listed: list[Json] = list(rights)
        try:
            answer = self.ask_for("POST", f"{resource}/testIamPermissions", {"permissions": listed})
        except OrderRefused as refused:
            self.find(path, f"nobody could ask for rights: {shown(str(refused))}", f"allow {', '.join(rights)}")
            return
        if lacking := [each for each in rights if each not in as_list(answer.get("permissions"))]:
            self.find(path, f"the master's account lacks {', '.join(lacking)}", f"allow {', '.join(lacking)}")


def _path_of(name: str, project: str) -> str:
    """The path of a resource that is written as a whole address, from ``projects`` on, or from ``global`` on."""
    path = name.partition(_API)[2] or name
    return path if path.startswith("projects/") else f"projects/{project}/{path}"
