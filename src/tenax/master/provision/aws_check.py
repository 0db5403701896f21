"""What of a pool's settings is not so at AWS: asked by calls that describe, and by dry runs, before anything is rented.

Rules: nothing is made; each thing is asked once, for all offers that name it; what the master's role may not look at is
told with the right that would let it. AWS answers a dry run that would have succeeded with an error of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from tenax.config.provider import ProviderSettings
from tenax.display.plural import counted
from tenax.lifecycle.offer import RestCause
from tenax.master.provision.aws_offers import Call, described_types, gpus_of, paged
from tenax.master.provision.port import OrderRefused, ProviderFinding, shown

#: Of no machine: what is refused for another reason would have been allowed.
_NO_MACHINE = "i-00000000000000000"
_WOULD_SUCCEED = "DryRunOperation"
_EVERYWHERE = ("0.0.0.0/0", "::/0")
#: What an order is made of for a dry run.
Orders = Callable[[ProviderSettings], Mapping[str, object]]
_Described = Mapping[str, object]


def findings(provider: ProviderSettings, call: Call, orders: Orders) -> Sequence[ProviderFinding]:
    """All of them. Raises ProviderAway."""
    look = _Look(provider, call)
    look.at_types()
    look.at_images()
    look.at_networks()
    look.at_keys()
    look.at_rights(orders)
    return tuple(dict.fromkeys(look.findings))


@dataclass(slots=True)
class _Look:
    """One look at all that settings name. Mutable; one call owns it."""

    provider: ProviderSettings
    call: Call
    findings: list[ProviderFinding] = field(default_factory=list)
    types: dict[str, _Described] = field(default_factory=dict)

    @property
    def offers(self) -> Sequence[tuple[int, ProviderSettings]]:
        return tuple(enumerate(self.provider.whole_offers()))

    def find(self, index: int, name: str, problem: str, instead: str) -> None:
        self.findings.append(ProviderFinding(self.provider.path_of(index, name), problem, instead))

    def listed(
        self, index: int, name: str, right: str, key: str, parameters: Mapping[str, object]
    ) -> Sequence[_Described] | None:
        """What a call describes; nothing for what is not there, None where nobody may look, which is a finding.

        ``right``: of the call, whose name it gives, too.
        """
        try:
            return tuple(paged(self.call, _call_of(right), key, parameters))
        except OrderRefused as refused:
            if refused.cause is RestCause.BAD_ORDER:
                return ()
            self.unseen(index, name, right, refused)
            return None

    def unseen(self, index: int, name: str, right: str, refused: OrderRefused) -> None:
        """It could not be looked at."""
        self.find(index, name, f"nobody could look at it: {shown(str(refused))}", f"allow {right}, or look yourself")

    def at_types(self) -> None:
        """Whether machines of each type are there, in each zone, with the GPUs that are to be its slots."""
        names = [offer.instance_type for _, offer in self.offers]
        try:
            self.types = described_types(names, self.call)
            offered = self._offered(names)
        except OrderRefused as refused:
            right = "ec2:DescribeInstanceTypes and ec2:DescribeInstanceTypeOfferings"
            self.unseen(0, "instance_type", right, refused)
            return
        for index, offer in self.offers:
            name = offer.instance_type
            if name not in self.types or not offered.get(name):
                self.find(
                    index, "instance_type", f"there are no machines of type {name} in {offer.region}",
                    "write a type that AWS has there",
                )  # fmt: skip
                continue
            self._at_type(index, offer, self.types[name])
            if absent := [zone for zone in offer.zones if zone not in offered[name]]:
                there = ", ".join(sorted(offered[name]))
                self.find(index, "zones", f"{name} is not to be had in {', '.join(absent)}", f"write some of {there}")

    def _at_type(self, index: int, offer: ProviderSettings, described: _Described) -> None:
        name, gpus = offer.instance_type, gpus_of(described)
        if not offer.cpu_slots_allowed and not gpus:
            self.find(
                index, "instance_type", f"{name} has no GPU",
                "write a type with GPUs, or cpu_slots_allowed: true with instance_slots",
            )  # fmt: skip
        elif not offer.cpu_slots_allowed and offer.instance_slots > gpus:
            has = f"{name} has {counted(gpus, 'GPU')}, and instance_slots is {offer.instance_slots}"
            self.find(index, "instance_slots", has, f"write {gpus}, or leave instance_slots out")
        if offer.spot and "spot" not in cast("Sequence[str]", described.get("SupportedUsageClasses", ("spot",))):
            self.find(
                index, "spot", f"{name} is not rented out as a spot machine", "write spot: false, or another type"
            )

    def _offered(self, names: Sequence[str]) -> dict[str, set[str]]:
        parameters = {
            "LocationType": "availability-zone",
            "Filters": [{"Name": "instance-type", "Values": sorted(set(names))}],
        }
        zones: dict[str, set[str]] = {}
        for each in paged(self.call, "describe_instance_type_offerings", "InstanceTypeOfferings", parameters):
            zones.setdefault(str(each["InstanceType"]), set()).add(str(each["Location"]))
        return zones

    def at_images(self) -> None:
        """Whether each image is there, and fits the type and the disk that are asked for with it."""
        known: dict[str, Sequence[_Described] | None] = {}
        for index, offer in self.offers:
            name = offer.image_id
            if name not in known:
                known[name] = self.listed(index, "image_id", "ec2:DescribeImages", "Images", {"ImageIds": [name]})
            images = known[name]
            if images == ():
                where = f"there is no image {name} in {offer.region} that this account may use"
                self.find(index, "image_id", where, "write the id of an image of that region: each has its own")
            elif images:
                self._at_image(index, offer, images[0])

    def _at_image(self, index: int, offer: ProviderSettings, image: _Described) -> None:
        own = str(image.get("Architecture", ""))
        processor = cast(
            "Mapping[str, Sequence[str]]", self.types.get(offer.instance_type, {}).get("ProcessorInfo", {})
        )
        taken = processor.get("SupportedArchitectures", ())
        if taken and own not in taken:
            problem = f"the image {offer.image_id} is for {own}, and {offer.instance_type} has {', '.join(taken)}"
            self.find(index, "image_id", problem, f"write an image for {taken[0]}, or another instance_type")
        disk = str(image.get("RootDeviceName") or offer.root_device_name)
        if disk != offer.root_device_name:
            problem = f"the disk of image {offer.image_id} is called {disk}: root_volume_size would make a second one"
            self.find(index, "root_device_name", problem, f"write root_device_name: {disk}")
        for each in cast("Sequence[Mapping[str, object]]", image.get("BlockDeviceMappings") or ()):
            size = cast("Mapping[str, int]", each.get("Ebs") or {}).get("VolumeSize", 0)
            if each.get("DeviceName") == disk and size > offer.root_volume_size:
                problem = f"the image {offer.image_id} needs a disk of {size} GB"
                self.find(index, "root_volume_size", problem, f"write {size}, or more")

    def at_networks(self) -> None:
        """Whether subnets and security groups are there, belong together, and lead out."""
        seen: set[object] = set()
        for index, offer in self.offers:
            network = offer.network_interface
            if network in seen:
                continue
            seen.add(network)
            subnet = self._at_subnet(index, offer)
            if network.security_group_id:
                self._at_group(index, network.security_group_id, subnet)

    def _at_subnet(self, index: int, offer: ProviderSettings) -> _Described | None:
        name, path = offer.network_interface.subnet_id, "network_interface.subnet_id"
        which = {"SubnetIds": [name]} if name else {"Filters": [{"Name": "default-for-az", "Values": ["true"]}]}
        subnets = self.listed(index, path, "ec2:DescribeSubnets", "Subnets", which)
        if subnets == ():
            problem = f"there is no subnet {name} in {offer.region}" if name else f"{offer.region} has no usual network"
            self.find(index, path, problem, "write the id of a subnet of that region")
        if not subnets or not name:
            return None
        self._at_way_out(index, offer, subnets[0])
        return subnets[0]

    def _at_way_out(self, index: int, offer: ProviderSettings, subnet: _Described) -> None:
        path, name = "network_interface.subnet_id", str(subnet["SubnetId"])
        own = [{"Name": "association.subnet-id", "Values": [name]}]
        usual = [
            {"Name": "vpc-id", "Values": [str(subnet["VpcId"])]},
            {"Name": "association.main", "Values": ["true"]},
        ]
        tables: Sequence[_Described] = ()
        for filters in (own, usual):
            listed = self.listed(index, path, "ec2:DescribeRouteTables", "RouteTables", {"Filters": filters})
            if listed is None:
                return
            tables = tables or listed
        routes = [each for table in tables for each in cast("Sequence[Mapping[str, str]]", table.get("Routes") or ())]
        out = [
            each
            for each in routes
            if (each.get("DestinationCidrBlock") or each.get("DestinationIpv6CidrBlock")) in _EVERYWHERE
            and each.get("State") != "blackhole"
        ]
        if not out:
            self.find(
                index, path, f"the subnet {name} has no way out: machines there reach neither an index nor a master "
                "elsewhere", "give its route table a route for 0.0.0.0/0, or write another subnet",
            )  # fmt: skip
        elif not offer.network_interface.public_ip and all(
            each.get("GatewayId", "").startswith("igw-") for each in out
        ):
            self.find(
                index, "network_interface.public_ip", f"the way out of subnet {name} is an internet gateway, which "
                "serves no machine without a public address", "write public_ip: true, or a subnet behind a NAT gateway",
            )  # fmt: skip

    def _at_group(self, index: int, name: str, subnet: _Described | None) -> None:
        path = "network_interface.security_group_id"
        groups = self.listed(index, path, "ec2:DescribeSecurityGroups", "SecurityGroups", {"GroupIds": [name]})
        if groups == ():
            problem = f"there is no security group {name} in {self.provider.region}"
            self.find(index, path, problem, "write the id of a group of the subnet's network")
        for group in groups or ():
            if subnet is not None and group.get("VpcId") != subnet["VpcId"]:
                problem = f"the group {name} is of network {group.get('VpcId')}, and the subnet of {subnet['VpcId']}"
                self.find(index, path, problem, "write a group and a subnet of one network")
            if not group.get("IpPermissionsEgress"):
                problem = f"the group {name} lets nothing out: no agent reaches the master"
                self.find(index, path, problem, "give it a rule for outgoing traffic")

    def at_keys(self) -> None:
        """Key pair and role of the machines."""
        key, profile = self.provider.ssh_key_name, self.provider.iam_instance_profile_arn
        if key:
            pairs = self.listed(0, "ssh_key_name", "ec2:DescribeKeyPairs", "KeyPairs", {"KeyNames": [key]})
            if pairs == ():
                problem = f"there is no key pair {key} in {self.provider.region}"
                self.find(0, "ssh_key_name", problem, "write the name of one of that region, or leave it out")
        if not profile:
            return
        name, path = profile.rpartition("/")[2], "iam_instance_profile_arn"
        instead = "write the ARN of an instance profile, as in arn:aws:iam::123456789012:instance-profile/NAME"
        if ":instance-profile/" not in profile:
            self.find(0, path, f"{profile} is no ARN of an instance profile", instead)
            return
        try:
            self.call("iam", "get_instance_profile", {"InstanceProfileName": name})
        except OrderRefused as refused:
            if refused.code.startswith("NoSuchEntity"):
                self.find(0, path, f"there is no instance profile {name}", instead)
            else:
                self.unseen(0, path, "iam:GetInstanceProfile", refused)

    def at_rights(self, orders: Orders) -> None:
        """Whether the master's role may order, look and end: all that is missing, and not the first alone."""
        steps: list[tuple[str, str, Mapping[str, object]]] = [
            ("ec2:DescribeInstances", "", {}),
            ("ec2:TerminateInstances", "", {"InstanceIds": [_NO_MACHINE]}),
        ]
        for right, path, parameters in steps:
            self._dry(right, path, parameters)
        known = bool(self.findings)
        for index, offer in self.offers:
            refused = self._dry("ec2:RunInstances", "", orders(offer))
            if refused is not None and refused.cause is not RestCause.NOT_ALLOWED and not known:
                self.find(index, "instance_type", shown(str(refused)), "write what the reason names")

    def _dry(self, right: str, path: str, parameters: Mapping[str, object]) -> OrderRefused | None:
        try:
            self.call("ec2", _call_of(right), {**parameters, "DryRun": True})
        except OrderRefused as refused:
            if refused.code == _WOULD_SUCCEED:
                return None
            if refused.cause is RestCause.NOT_ALLOWED:
                self.findings.append(
                    ProviderFinding(path, f"{right} is refused: {shown(str(refused))}", "allow what is named")
                )
            return refused
        return None


def _call_of(right: str) -> str:
    """``ec2:DescribeKeyPairs`` as boto3 calls it."""
    words = right.partition(":")[2]
    return "".join(f"_{each.lower()}" if each.isupper() else each for each in words).lstrip("_")
