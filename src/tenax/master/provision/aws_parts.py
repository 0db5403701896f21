"""What AWS has beside instances that is marked as this cluster's: volumes, addresses, spot requests.

A volume ends with its instance, and a spot request is for one instance; what is free, or open, was left.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

from tenax.errors import TenaxError
from tenax.master.provision.aws_offers import Call, paged
from tenax.master.provision.port import CLUSTER, MACHINE, MachinePart, OrderRefused, PartKind, PartsAnswer, shown

#: States of what has ended: it is listed for a while, and costs nothing.
_OVER = frozenset({"deleting", "deleted", "closed", "cancelled", "failed"})
#: How each kind is listed: the call, the key of its answer, and what is asked for beside; addresses have no pages.
_LISTED: Mapping[PartKind, tuple[str, str, Mapping[str, object]]] = {
    PartKind.DISK: ("describe_volumes", "Volumes", {"MaxResults": 500}),
    PartKind.ADDRESS: ("describe_addresses", "Addresses", {}),
    PartKind.SPOT_REQUEST: ("describe_spot_instance_requests", "SpotInstanceRequests", {"MaxResults": 500}),
}
#: How each is deleted: the call, and its parameters.
_REMOVED: Mapping[PartKind, tuple[str, Callable[[str], Mapping[str, object]]]] = {
    PartKind.DISK: ("delete_volume", lambda name: {"VolumeId": name}),
    PartKind.SPOT_REQUEST: ("cancel_spot_instance_requests", lambda name: {"SpotInstanceRequestIds": [name]}),
}
#: How codes begin of what is not there any more.
_NOT_THERE = ("InvalidVolume.NotFound", "InvalidSpotInstanceRequestID.NotFound")


def parts_of(cluster_id: str, call: Call) -> PartsAnswer:
    """All that carries the mark, of one region; each kind is asked for by itself."""
    filters = [{"Name": f"tag:{CLUSTER}", "Values": [cluster_id]}]
    parts: list[MachinePart] = []
    unknown: list[str] = []
    for kind, (name, key, more) in _LISTED.items():
        try:
            listed = list(paged(call, name, key, {"Filters": filters, **more}))
        except TenaxError as error:
            unknown.append(f"no {kind.value.lower().replace('_', ' ')} was looked at: {shown(error.message)}")
            continue
        parts += [_part(kind, each) for each in listed if each.get("State") not in _OVER]
    return PartsAnswer(tuple(parts), tuple(unknown))


def remove_part(part: MachinePart, call: Call) -> None:
    """Delete it. Raises OrderRefused, ProviderAway."""
    name, parameters = _REMOVED[part.kind]
    try:
        call("ec2", name, parameters(part.provider_id))
    except OrderRefused as error:
        if not error.code.startswith(_NOT_THERE):
            raise


def _part(kind: PartKind, each: Mapping[str, object]) -> MachinePart:
    listed = cast("Sequence[Mapping[str, str]]", each.get("Tags") or ())
    mark = next((tag["Value"] for tag in listed if tag["Key"] == MACHINE), "")
    state = str(each.get("State", ""))
    if kind is PartKind.DISK:
        attached = cast("Sequence[Mapping[str, str]]", each.get("Attachments") or ())
        holder = next((name for it in attached if (name := it.get("InstanceId") or it.get("AssociatedResource"))), "")
        zone, detail = str(each.get("AvailabilityZone", "")), f"{each.get('Size')} GiB"
        return MachinePart(kind, str(each["VolumeId"]), mark, zone, holder, detail, state == "available" and not holder)
    holder = str(each.get("InstanceId") or each.get("NetworkInterfaceId") or "")
    if kind is PartKind.ADDRESS:
        address = str(each.get("PublicIp", ""))
        return MachinePart(kind, str(each.get("AllocationId") or address), mark, "", holder, address)
    name = str(each["SpotInstanceRequestId"])
    return MachinePart(kind, name, mark, "", holder, state, state == "open" and not holder)
