"""Machines of AWS: RunInstances, DescribeInstances, TerminateInstances.

Rules: boto3 is loaded when the first call is made, and not before; it takes credentials from where it always does (the
role of the machine, a profile, the environment). A call is made once: whether to repeat it is decided by who asks.
An instance ends when it powers itself off, and answers metadata by sessions alone.
"""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Protocol, cast

from tenax.config.provider import ProviderSettings, is_own_address
from tenax.config.provider.gcp import AnyProviderSettings
from tenax.config.provider.rights import PRINTED
from tenax.lifecycle.offer import RestCause
from tenax.master.provision.aws_check import findings
from tenax.master.provision.aws_offers import answers_of, region_of
from tenax.master.provision.aws_parts import parts_of, remove_part
from tenax.master.provision.port import (
    CLUSTER,
    MACHINE,
    POOL,
    MachineOrder,
    MachinePart,
    OfferAnswers,
    OrderRefused,
    PartsAnswer,
    ProviderAway,
    ProviderFinding,
    ProviderPlace,
    SeenMachine,
    marks,
    refused,
    shown,
)

_CONNECT_S, _ANSWER_S = 5, 20
#: Codes after which the same request may succeed: nothing is known to be wrong with it.
_PASSING = ("RequestLimitExceeded", "Throttl", "Unavailable", "InternalError", "InternalFailure", "ServiceUnavailable")
#: What only somebody of the account can read.
_ENCODED = re.compile(r"\s*Encoded authorization failure message: \S+")
_ENDED = frozenset({"shutting-down", "terminated"})
_LACKS_RIGHT = "the master's role lacks the right"
#: Kinds of refusals, and for people what to do, by how a code begins; of others it is tried again, and the next offer.
_REFUSALS: Mapping[str, tuple[RestCause, str]] = {
    "InsufficientInstanceCapacity": (RestCause.NO_CAPACITY, "the provider has none of that type there now"),
    "InsufficientHostCapacity": (RestCause.NO_CAPACITY, "the provider has none of that type there now"),
    "InsufficientCapacity": (RestCause.NO_CAPACITY, "the provider has none of that type there now"),
    "SpotMaxPriceTooLow": (
        RestCause.NO_CAPACITY,
        "spot machines cost more than spot_max_price, or max_price, there now",
    ),
    "VcpuLimitExceeded": (
        RestCause.OVER_QUOTA,
        "the account's quota for that type is used up: have Running On-Demand Instances of its family raised (Service "
        "Quotas, Amazon EC2)",
    ),
    "InstanceLimitExceeded": (RestCause.OVER_QUOTA, "the account's quota of instances of that type is used up"),
    "MaxSpotInstanceCountExceeded": (
        RestCause.OVER_QUOTA,
        "the account's quota is used up: have All Spot Instance Requests of its family raised (Service Quotas, Amazon "
        "EC2)",
    ),
    "VolumeLimitExceeded": (RestCause.OVER_QUOTA, "the account's quota Storage for gp3 volumes is used up"),
    "AddressLimitExceeded": (RestCause.OVER_QUOTA, "the account's quota of addresses is used up"),
    "UnauthorizedOperation": (RestCause.NOT_ALLOWED, _LACKS_RIGHT),
    "AccessDenied": (RestCause.NOT_ALLOWED, _LACKS_RIGHT),
    "AuthFailure.ServiceLinkedRoleCreationNotPermitted": (RestCause.NOT_ALLOWED, _LACKS_RIGHT),
    "AuthFailure": (RestCause.NOT_ALLOWED, "the master's credentials are not accepted"),
    "OptInRequired": (RestCause.NOT_ALLOWED, "the account has not accepted the terms of that image or service"),
    "InvalidAMIID": (RestCause.BAD_ORDER, "image_id is none of that region"),
    "InvalidSubnetID": (RestCause.BAD_ORDER, "network_interface.subnet_id is none of that region"),
    "InvalidGroup": (RestCause.BAD_ORDER, "network_interface.security_group_id is none of that network"),
    "InvalidKeyPair": (RestCause.BAD_ORDER, "ssh_key_name is none of that region"),
    "Unsupported": (RestCause.BAD_ORDER, "the provider has no such machine there"),
    "Invalid": (RestCause.BAD_ORDER, ""),
    "Missing": (RestCause.BAD_ORDER, ""),
}
_ACTION = re.compile(r"perform: ([a-z0-9-]+:[A-Za-z]+)")
#: What may be missing where a refusal does not say it: by how its code begins, else by the call.
_MISSING_BY_CODE = {"AuthFailure.ServiceLinkedRole": "iam:CreateServiceLinkedRole"}
_MISSING_BY_CALL = {"run_instances": "ec2:RunInstances and ec2:CreateTags"}


class _Ec2(Protocol):
    def run_instances(self, **parameters: object) -> Mapping[str, object]: ...
    def terminate_instances(self, **parameters: object) -> Mapping[str, object]: ...
    def get_paginator(self, name: str) -> _Pages: ...


class _Pages(Protocol):
    def paginate(self, **parameters: object) -> Sequence[Mapping[str, object]]: ...


class Aws:
    """One region of one account."""

    def __init__(self, place: ProviderPlace, cluster_id: str) -> None:
        self._place = place
        self._cluster_id = cluster_id
        self._clients: dict[str, object] = {}

    async def launch(self, order: MachineOrder) -> SeenMachine:
        """One instance; the order's id is the ClientToken. Raises OrderRefused, ProviderAway."""
        try:
            answer = await asyncio.to_thread(self._call, "run_instances", run_parameters(self._cluster_id, order))
        except (OrderRefused, ProviderAway) as error:
            # An answer may show what it does not like of the request.
            encoded = base64.b64encode(order.user_data.encode()).decode()
            message = shown(error.message, [encoded, order.user_data])
            raise refused(error.cause, message) if isinstance(error, OrderRefused) else ProviderAway(message) from None
        instances = cast("Sequence[Mapping[str, object]]", answer["Instances"])
        return _seen(instances[0])

    async def look(self) -> Sequence[SeenMachine]:
        """All pages of what carries the mark. Raises ProviderAway."""
        try:
            return await asyncio.to_thread(self._look)
        except OrderRefused as error:
            raise ProviderAway(error.message) from None

    async def end(self, provider_ids: Sequence[str]) -> None:
        """Each by itself: one that is not there keeps no other from its end. Raises ProviderAway."""
        for provider_id in provider_ids:
            try:
                await asyncio.to_thread(self._call, "terminate_instances", {"InstanceIds": [provider_id]})
            except OrderRefused as error:
                if "InvalidInstanceID" not in error.message:
                    raise ProviderAway(error.message) from None

    async def ask(self, offers: Sequence[AnyProviderSettings]) -> OfferAnswers:
        """GPUs by DescribeInstanceTypes; prices by DescribeSpotPriceHistory and the price list."""
        of_aws = [offer for offer in offers if isinstance(offer, ProviderSettings)]
        return await asyncio.to_thread(answers_of, of_aws, self.call, datetime.now(timezone.utc))

    async def check(self, settings: AnyProviderSettings) -> Sequence[ProviderFinding]:
        """By calls that describe, and by dry runs. Raises ProviderAway."""
        assert isinstance(settings, ProviderSettings)

        def orders(offer: ProviderSettings) -> Mapping[str, object]:
            return run_parameters(self._cluster_id, MachineOrder("m-dry-run", "dry-run", offer, ""))

        return await asyncio.to_thread(findings, settings, self.call, orders)

    async def parts(self) -> PartsAnswer:
        """Volumes, addresses and spot requests."""
        return await asyncio.to_thread(parts_of, self._cluster_id, self.call)

    async def remove(self, part: MachinePart) -> None:
        """By its own call. Raises OrderRefused, ProviderAway."""
        await asyncio.to_thread(remove_part, part, self.call)

    def call(self, service: str, name: str, parameters: Mapping[str, object]) -> Mapping[str, object]:
        """One call of a service, in this thread. Raises OrderRefused, ProviderAway."""
        return self._translated(name, lambda: getattr(self._client(service), name)(**parameters), service)

    def _look(self) -> list[SeenMachine]:
        filters = [{"Name": f"tag:{CLUSTER}", "Values": [self._cluster_id]}]
        seen: list[SeenMachine] = []

        def every_page() -> Mapping[str, object]:
            for page in self._ec2().get_paginator("describe_instances").paginate(Filters=filters):
                for reservation in cast("Sequence[Mapping[str, object]]", page["Reservations"]):
                    seen.extend(map(_seen, cast("Sequence[Mapping[str, object]]", reservation["Instances"])))
            return {}

        self._translated("describe_instances", every_page)
        return seen

    def _call(self, name: str, parameters: Mapping[str, object]) -> Mapping[str, object]:
        return self._translated(name, lambda: getattr(self._ec2(), name)(**parameters))

    def _ec2(self) -> _Ec2:
        return cast("_Ec2", self._client("ec2"))

    def _client(self, service: str) -> object:
        if service not in self._clients:
            import boto3
            from botocore.config import Config

            config = Config(
                connect_timeout=_CONNECT_S,
                read_timeout=_ANSWER_S,
                retries={"total_max_attempts": 1, "mode": "standard"},
            )
            # An endpoint is that of EC2; on this machine it is a server of all services.
            endpoint = self._place.endpoint if service == "ec2" or is_own_address(self._place.endpoint) else ""
            # A session of its own: boto3's is shared by threads.
            session = boto3.session.Session(region_name=region_of(service, self._place.region))
            self._clients[service] = session.client(service, endpoint_url=endpoint or None, config=config)
        return self._clients[service]

    def _translated(self, name: str, call: _Call, service: str = "ec2") -> Mapping[str, object]:
        try:
            import botocore.exceptions as faults
            from botocore.parsers import ResponseParserError
        except ImportError:
            raise ProviderAway(
                "boto3 is not installed beside the master: pip install 'tenax[aws]' there, and start it again"
            ) from None
        try:
            return call()
        except faults.ClientError as error:
            details = error.response.get("Error", {})
            code, message = str(details.get("Code", "")), _ENCODED.sub("", str(details.get("Message", "")))
            status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 500)
            if status >= 500 or code.startswith(_PASSING):
                raise ProviderAway(f"{code}: {message}") from None
            raise refusal(code, message, name, service) from None
        except (faults.BotoCoreError, ResponseParserError, ValueError, OSError) as error:
            # The last two: of an address, or a file with credentials or certificates, that is of no use.
            raise ProviderAway(str(error)) from None


def refusal(code: str, message: str, call: str = "run_instances", service: str = "ec2") -> OrderRefused:
    """What a refusal of AWS is: its kind, and what to do; ``call``: boto3's name of what was refused."""
    kinds = (known for begin, known in _REFUSALS.items() if code.startswith(begin))
    cause, advice = next(kinds, (RestCause.REFUSED, ""))
    if advice == _LACKS_RIGHT:
        action = _ACTION.search(message)
        by_code = (missing for begin, missing in _MISSING_BY_CODE.items() if code.startswith(begin))
        by_call = _MISSING_BY_CALL.get(call, f"{service}:{''.join(map(str.title, call.split('_')))}")
        missing = action[1] if action else next(by_code, by_call)
        is_printed = missing.partition(" ")[0] in PRINTED
        advice += f": allow {missing}, see tenax machine policy" if is_printed else f": allow {missing}"
    return refused(cause, f"{advice} ({code}: {message})" if advice else f"{code}: {message}", code)


class _Call(Protocol):
    def __call__(self) -> Mapping[str, object]: ...


def run_parameters(cluster_id: str, order: MachineOrder) -> dict[str, object]:
    """Of RunInstances. The same order gives the same ones: AWS refuses a key that comes with others."""
    settings = order.settings
    assert isinstance(settings, ProviderSettings)
    by_key = {
        "Name": settings.instance_name,
        settings.tag_key: settings.tag_value,
        **{tag.key: tag.value for tag in settings.custom_tags},
        **marks(cluster_id, order),
    }
    tags = [{"Key": key, "Value": value} for key, value in by_key.items()]
    disk = {"VolumeSize": settings.root_volume_size, "VolumeType": "gp3", "DeleteOnTermination": True}
    network = settings.network_interface
    interface: dict[str, object] = {"DeviceIndex": 0, "AssociatePublicIpAddress": network.public_ip}
    if network.subnet_id:
        interface["SubnetId"] = network.subnet_id
    if network.security_group_id:
        interface["Groups"] = [network.security_group_id]
    metadata: dict[str, object] = {"HttpTokens": "required", "HttpEndpoint": "enabled"}
    if not settings.tasks_see_metadata:
        # An answer does not get as far as a container with a network of its own.
        metadata["HttpPutResponseHopLimit"] = 1
    parameters: dict[str, object] = {
        "ClientToken": order.machine_id,
        "ImageId": settings.image_id,
        "InstanceType": settings.instance_type,
        "MinCount": 1,
        "MaxCount": 1,
        "UserData": order.user_data,
        "InstanceInitiatedShutdownBehavior": "terminate",
        "MetadataOptions": metadata,
        "BlockDeviceMappings": [{"DeviceName": settings.root_device_name, "Ebs": disk}],
        "NetworkInterfaces": [interface],
        "TagSpecifications": [
            {"ResourceType": kind, "Tags": tags}
            for kind in ("instance", "volume", *(["spot-instances-request"] if settings.spot else []))
        ],
    }
    if settings.spot:
        spot = {"SpotInstanceType": "one-time", "InstanceInterruptionBehavior": "terminate"}
        # What was asked of prices may be an hour old.
        limits = [limit for limit in (settings.spot_max_price, settings.max_price) if limit is not None]
        if limits:
            spot["MaxPrice"] = f"{min(limits):.5f}"
        parameters["InstanceMarketOptions"] = {"MarketType": "spot", "SpotOptions": spot}
    if settings.zones:
        parameters["Placement"] = {"AvailabilityZone": settings.zones[0]}
    if settings.ssh_key_name:
        parameters["KeyName"] = settings.ssh_key_name
    if settings.iam_instance_profile_arn:
        parameters["IamInstanceProfile"] = {"Arn": settings.iam_instance_profile_arn}
    return parameters


def _seen(instance: Mapping[str, object]) -> SeenMachine:
    listed = cast("Sequence[Mapping[str, str]]", instance.get("Tags") or ())
    tags = {tag["Key"]: tag["Value"] for tag in listed}
    state = cast("Mapping[str, str]", instance["State"])["Name"]
    place = cast("Mapping[str, str]", instance.get("Placement") or {})
    return SeenMachine(
        str(instance["InstanceId"]),
        tags.get(MACHINE, ""),
        tags.get(POOL, ""),
        place.get("AvailabilityZone", ""),
        str(instance.get("InstanceType", "")),
        state in _ENDED,
    )
