"""What Compute Engine is told of a machine, and what its answers mean: functions of values, no call.

Rules: the same order gives the same instance. A label has small letters, digits, ``-`` and ``_`` alone, so that the
pool's name as it is stands in the metadata. What a refusal is, its code says by how it begins: codes grow endings. An
order that was refused by a code that nobody knows is sent again after a while.
"""

from __future__ import annotations

import math
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tenax.config.provider.gcp import POOL_ITEM, STARTUP_SCRIPT, GcpSettings
from tenax.jsonvalue import Json, JsonObject, as_list, as_object
from tenax.lifecycle.offer import RestCause
from tenax.master.provision.port import CLUSTER, MACHINE, POOL, MachineOrder, SeenMachine, marks

#: Its hardware is looked for: it may not be made after all.
_NOT_YET = "PROVISIONING"
#: It is there no more but for its disk, and does not come again unless it is started: what is ours is deleted then.
STOPPED = frozenset({"STOPPED", "SUSPENDED", "TERMINATED"})
_OF_OURS = uuid.UUID("5cf6c1a4-6f6f-4b86-9d0f-5d1a0a3e7b11")


@dataclass(frozen=True, slots=True)
class ProviderRefusal:
    """An error of the provider's, for people, and what follows from it."""

    #: None: nobody knows what was done, and the same request may succeed.
    cause: RestCause | None
    words: str
    #: As the provider calls it.
    code: str = ""


_ADVICE: Mapping[RestCause, str] = {
    RestCause.NO_CAPACITY: "the provider has none of that type there now",
    RestCause.OVER_QUOTA: "the project's quota is used up: have it raised (IAM & Admin, Quotas)",
    RestCause.NOT_ALLOWED: "the master's account lacks a right: ",
}
#: What a message names as missing, and who has all that an order needs.
_PERMISSION = re.compile(r"'([a-z][a-zA-Z]*\.[a-zA-Z]+\.[a-zA-Z]+)'")
_ACTS_AS = re.compile(r"access to service account|serviceAccountUser")
_ROLES = (
    "roles/compute.instanceAdmin.v1 has them, and with service_account roles/iam.serviceAccountUser on that account"
)
#: The first that a code or reason begins with, in small letters and without ``_``.
_CODES: Sequence[tuple[str, RestCause | None]] = (
    ("zoneresourcepoolexhausted", RestCause.NO_CAPACITY),
    ("resourcepoolexhausted", RestCause.NO_CAPACITY),
    ("insufficientcapacity", RestCause.NO_CAPACITY),
    ("stockout", RestCause.NO_CAPACITY),
    ("quotaexceeded", RestCause.OVER_QUOTA),
    ("limitexceeded", RestCause.OVER_QUOTA),
    ("ratelimitexceeded", None),
    ("userratelimitexceeded", None),
    ("concurrentoperations", None),
    ("resourceoperationrateexceeded", None),
    ("resourcenotready", None),
    ("internalerror", None),
    ("backenderror", None),
    ("forbidden", RestCause.NOT_ALLOWED),
    ("permission", RestCause.NOT_ALLOWED),
    ("serviceaccountaccessdenied", RestCause.NOT_ALLOWED),
    ("accessnotconfigured", RestCause.NOT_ALLOWED),
    ("invalid", RestCause.BAD_ORDER),
    ("required", RestCause.BAD_ORDER),
    ("badrequest", RestCause.BAD_ORDER),
    ("notfound", RestCause.BAD_ORDER),
    ("resourcenotfound", RestCause.BAD_ORDER),
    ("unsupportedoperation", RestCause.BAD_ORDER),
)


def refusal_of_answer(status: int, answer: JsonObject) -> ProviderRefusal:
    """Of a request that was not taken; the status tells where the reason does not."""
    error = as_object(answer.get("error"))
    reasons = [str(as_object(each).get("reason", "")) for each in as_list(error.get("errors"))]
    code = next((reason for reason in reasons if reason), str(status))
    by_status = (
        None if status >= 500 or status in (408, 429)
        else RestCause.NOT_ALLOWED if status in (401, 403)
        else RestCause.BAD_ORDER if status in (400, 404)
        else RestCause.REFUSED
    )  # fmt: skip
    return _refusal(code, str(error.get("message", "")), by_status)


def refusal_of_operation(operation: JsonObject) -> ProviderRefusal | None:
    """Of an operation that is over and has failed; None: it has not."""
    errors = as_list(as_object(operation.get("error")).get("errors"))
    if operation.get("status") != "DONE" or not errors:
        return None
    first = as_object(errors[0])
    return _refusal(str(first.get("code", "")), str(first.get("message", "")), RestCause.REFUSED)


def _refusal(code: str, message: str, otherwise: RestCause | None) -> ProviderRefusal:
    plain = code.lower().replace("_", "")
    cause = next((cause for begin, cause in _CODES if plain.startswith(begin)), otherwise)
    advice, text = _ADVICE.get(cause, "") if cause is not None else "", f"{code}: {message}" if message else code
    if cause is RestCause.NOT_ALLOWED:
        advice += _missing(message)
    return ProviderRefusal(cause, f"{advice} ({text})" if advice else text, code)


def _missing(message: str) -> str:
    """Which right a message says is missing, for people."""
    if named := _PERMISSION.search(message):
        return f"allow {named[1]}"
    return "allow iam.serviceAccounts.actAs on service_account" if _ACTS_AS.search(message) else _ROLES


def instance_name(order: MachineOrder, settings: GcpSettings) -> str:
    """Of one machine; a valid name, and the same for the same order."""
    return f"{settings.name_prefix}{order.machine_id}"


def request_id(order: MachineOrder, zone: str) -> str:
    """The provider's key: of the row, and of the zone, which is another request."""
    return str(uuid.uuid5(_OF_OURS, f"{order.machine_id} {zone}"))


def label(text: str) -> str:
    """A text as the value of a label."""
    return re.sub(r"[^-_a-z0-9]", "-", text.lower())[:63]


def misfit(settings: GcpSettings, machine_type: JsonObject) -> str | None:
    """Why a machine of this type, as the provider describes it, is not what the settings say; None: it is."""
    its = settings.instance_type
    has, kinds = _own_gpus(machine_type)
    if has and (its.gpu_num != has or (its.gpu_type and its.gpu_type not in kinds)):
        gpus = f"gpu_num {its.gpu_num}" + (f" and gpu_type {its.gpu_type}" if its.gpu_type else "")
        own = f"{has} {', '.join(kinds)}"
        return f"{its.machine_type} comes with {own}, and instance_type says {gpus}: write what it has"
    if not has and its.gpu_num and not its.gpu_type:
        return f"{its.machine_type} comes without GPUs: write in instance_type.gpu_type which are to be added"
    cpus = machine_type.get("guestCpus")
    if settings.cpu_slots_allowed and isinstance(cpus, int) and settings.cpu_slots > cpus:
        return f"{its.machine_type} has {cpus} processors, and cpu_slots is {settings.cpu_slots}: lower it"
    return None


def instance_body(
    cluster_id: str, order: MachineOrder, settings: GcpSettings, zone: str, machine_type: JsonObject
) -> JsonObject:
    """Of instances.insert: what is to be made in a zone."""
    its, base = settings.instance_type, settings.base_config
    own_marks = {key: label(value) for key, value in marks(cluster_id, order).items()}
    labels: JsonObject = {settings.label_key: settings.label_value, **settings.labels, **own_marks}
    items = as_list(as_object(base.get("metadata")).get("items"))
    disk: JsonObject = {
        "sourceImage": settings.boot_disk_source_image,
        "diskSizeGb": str(settings.boot_disk_size),
        "diskType": f"zones/{zone}/diskTypes/{settings.boot_disk_type}",
        "labels": dict(labels),
    }
    body: JsonObject = {
        **base,
        "name": instance_name(order, settings),
        "machineType": f"zones/{zone}/machineTypes/{its.machine_type}",
        "labels": labels,
        "disks": [{"boot": True, "autoDelete": True, "initializeParams": disk}],
        "networkInterfaces": [_interface(settings)],
        "scheduling": _scheduling(settings),
        "metadata": {
            "items": [
                *items,
                {"key": POOL_ITEM, "value": order.pool},
                {"key": STARTUP_SCRIPT, "value": order.user_data},
            ]
        },
    }
    if settings.network_tags:
        body["tags"] = {"items": list(settings.network_tags)}
    if settings.service_account.email:
        scopes: list[Json] = list(settings.service_account.scopes)
        body["serviceAccounts"] = [{"email": settings.service_account.email, "scopes": scopes}]
    if its.gpu_num and not _own_gpus(machine_type)[0]:
        gpus = f"projects/{settings.project}/zones/{zone}/acceleratorTypes/{its.gpu_type}"
        body["guestAccelerators"] = [{"acceleratorType": gpus, "acceleratorCount": its.gpu_num}]
    return body


def seen_instance(instance: JsonObject, zone: str) -> SeenMachine:
    """As a look shows it. What is stopping is there still: it has ended once it has stopped, or is listed no more."""
    labels = as_object(instance.get("labels"))
    items = [as_object(each) for each in as_list(as_object(instance.get("metadata")).get("items"))]
    pool = next((str(each.get("value", "")) for each in items if each.get("key") == POOL_ITEM), labels.get(POOL, ""))
    return SeenMachine(
        f"{zone}/{instance['name']}",
        str(labels.get(MACHINE, "")),
        str(pool),
        zone,
        str(instance.get("machineType", "")).rpartition("/")[2],
        instance.get("status") in STOPPED,
        made=instance.get("status") != _NOT_YET,
    )


def filter_of(cluster_id: str) -> str:
    """Of a list: what carries the mark of a cluster."""
    return f"labels.{CLUSTER}={label(cluster_id)}"


def _own_gpus(machine_type: JsonObject) -> tuple[int, list[str]]:
    """How many a machine type comes with, and which."""
    listed = [as_object(each) for each in as_list(machine_type.get("accelerators"))]
    counts = [count for each in listed if isinstance(count := each.get("guestAcceleratorCount"), int)]
    return sum(counts), [str(each.get("guestAcceleratorType", "")) for each in listed]


def _interface(settings: GcpSettings) -> JsonObject:
    network = settings.network_interface
    interface: JsonObject = {}
    if network.network or not network.subnetwork:
        interface["network"] = network.network or "global/networks/default"
    if network.subnetwork:
        interface["subnetwork"] = network.subnetwork
    if network.external_ip:
        interface["accessConfigs"] = [{"type": "ONE_TO_ONE_NAT", "name": "External NAT"}]
    return interface


def _scheduling(settings: GcpSettings) -> JsonObject:
    scheduling: JsonObject = {**as_object(settings.base_config.get("scheduling")), "provisioningModel": "STANDARD"}
    if settings.instance_type.preemptible:
        spot: JsonObject = {"provisioningModel": "SPOT", "instanceTerminationAction": "DELETE"}
        scheduling |= spot | {"automaticRestart": False}
    if settings.max_run is not None:
        life: JsonObject = {"seconds": str(math.ceil(settings.max_run))}
        scheduling |= {"maxRunDuration": life, "instanceTerminationAction": "DELETE"}
    if settings.instance_type.preemptible or settings.instance_type.gpu_num:
        # Neither can be moved to another host while it runs.
        scheduling["onHostMaintenance"] = "TERMINATE"
    return scheduling
