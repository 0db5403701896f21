"""Compute Engine: what each setting makes of an order, and what is made of each answer."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tenax.lifecycle.offer import RestCause
from tenax.master.provision import gcp as gcp_module
from tenax.master.provision.gcp import Gcp
from tenax.master.provision.gcp_instances import refusal_of_answer, refusal_of_operation
from tenax.master.provision.port import MachineOrder, OrderRefused, ProviderAway, ProviderPlace, SeenMachine
from tests.kits.compute_engine import IMAGE, PROJECT, ComputeEngine, Refused, discovery, faults
from tests.kits.rented_gcp import RentedAtGoogle, gcp_settings, google

CLUSTER = "0b6e4d0e-5c39-4b19-8e5b-9f1c3d4a7e21"
A, B = "us-central1-a", "us-central1-b"


LABELS = {
    "owner": "vision", "team": "a_b-1",
    "tenax-cluster": CLUSTER, "tenax-pool": "my-pool", "tenax-machine": "m-7",
}  # fmt: skip
ZONE = f"zones/{A}"
#: What the order of the first test makes.
IN_FULL = {
    "name": "gpu-m-7",
    "machineType": f"{ZONE}/machineTypes/n1-standard-8",
    "minCpuPlatform": "Intel Skylake",
    "labels": LABELS,
    "disks": [
        {
            "boot": True,
            "autoDelete": True,
            "initializeParams": {
                "sourceImage": IMAGE, "diskSizeGb": "300", "diskType": f"{ZONE}/diskTypes/pd-ssd", "labels": LABELS,
            },
        }
    ],
    "guestAccelerators": [
        {"acceleratorType": f"projects/{PROJECT}/{ZONE}/acceleratorTypes/nvidia-tesla-t4", "acceleratorCount": 2}
    ],
    "networkInterfaces": [
        {
            "network": "global/networks/default",
            "accessConfigs": [{"type": "ONE_TO_ONE_NAT", "name": "External NAT"}],
        }
    ],
    "tags": {"items": ["ssh", "agents"]},
    "serviceAccounts": [
        {
            "email": "agents@x.iam.gserviceaccount.com",
            "scopes": ["https://www.googleapis.com/auth/cloud-platform"],
        }
    ],
    "scheduling": {
        "maxRunDuration": {"seconds": "3600"}, "provisioningModel": "SPOT", "instanceTerminationAction": "DELETE",
        "automaticRestart": False, "onHostMaintenance": "TERMINATE",
    },
    "metadata": {
        "items": [
            {"key": "enable-oslogin", "value": "TRUE"},
            {"key": "tenax-pool", "value": "My Pool"},
            {"key": "startup-script", "value": "#!/bin/sh\necho up\n"},
        ]
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RentedAtGoogle]:
    """One for the module."""
    with google(tmp_path_factory.mktemp("google")) as rented:
        yield rented


@pytest.fixture
def rented(server: RentedAtGoogle, monkeypatch: pytest.MonkeyPatch) -> RentedAtGoogle:
    """With nothing in it, and all well."""
    for name, value in server.account.items():
        monkeypatch.setenv(name, value)
    server.engine.reset()
    return server


@pytest.fixture
def engine(rented: RentedAtGoogle) -> ComputeEngine:
    return rented.engine


@pytest.fixture
def provider(rented: RentedAtGoogle) -> Gcp:
    """That a pool's settings open."""
    return Gcp(ProviderPlace("gcp", f"{PROJECT}/us-central1", rented.url), CLUSTER)


def order(name: str = "m-1", pool: str = "default", **changes: Any) -> MachineOrder:
    return MachineOrder(name, pool, gcp_settings(**changes), "#!/bin/sh\necho up\n")


def one(seen: Sequence[SeenMachine]) -> SeenMachine:
    [it] = seen
    return it


async def made(provider: Gcp, engine: ComputeEngine, **changes: Any) -> dict[str, Any]:
    """The instance that an order makes."""
    return dict(engine.instances[(await provider.launch(order(**changes))).provider_id])


async def test_an_order_says_what_the_settings_say(provider: Gcp, engine: ComputeEngine) -> None:
    """Each of them, and the description of the API has nothing against it."""
    instance = await made(
        provider, engine,
        pool="My Pool", name="m-7", name_prefix="gpu-",
        cpu_slots_allowed=False, cpu_slots=None,
        instance_type={
            "machine_type": "n1-standard-8", "gpu_type": "nvidia-tesla-t4", "gpu_num": 2, "preemptible": True,
        },
        boot_disk_size=300, boot_disk_type="pd-ssd", label_key="owner", label_value="vision", labels={"team": "a_b-1"},
        network_interface={"external_ip": True}, network_tags=["ssh", "agents"],
        service_account={"email": "agents@x.iam.gserviceaccount.com"},
        base_config={
            "minCpuPlatform": "Intel Skylake", "scheduling": {"maxRunDuration": {"seconds": "3600"}},
            "metadata": {"items": [{"key": "enable-oslogin", "value": "TRUE"}]},
        },
    )  # fmt: skip
    del instance["status"], instance["zone"]
    assert instance == IN_FULL
    seen = SeenMachine(f"{A}/gpu-m-7", "m-7", "My Pool", A, "n1-standard-8", made=False)
    assert one(await provider.look()) == seen
    assert one(await provider.look()) == replace(seen, made=True)


async def test_without_a_wish_a_machine_has_no_address_no_account_and_no_gpu(
    provider: Gcp, engine: ComputeEngine
) -> None:
    """And is restarted by the provider after a fault of its host."""
    instance = await made(provider, engine)
    assert instance["networkInterfaces"] == [{"network": "global/networks/default"}]
    assert not {"serviceAccounts", "guestAccelerators", "tags"} & instance.keys()
    assert instance["scheduling"] == {"provisioningModel": "STANDARD"}


async def test_the_double_takes_nothing_that_the_description_has_not(provider: Gcp) -> None:
    """What is misspelt, of another type, or the provider's own is refused, and final for that order."""
    with pytest.raises(OrderRefused, match=r"resource\.minCpuPlatfrom is unknown"):
        await provider.launch(order(base_config={"minCpuPlatfrom": "x"}))
    with pytest.raises(OrderRefused, match=r"resource\.canIpForward is no boolean"):
        await provider.launch(order(base_config={"canIpForward": "yes"}))
    with pytest.raises(OrderRefused, match=r"resource\.status is the provider's"):
        await provider.launch(order(base_config={"status": "RUNNING"}))
    schemas = discovery()["schemas"]
    body = {"scheduling": {"provisioningModel": "CHEAP"}, "disks": [{"diskSizeGb": 7}]}
    told = list(faults(schemas, {"$ref": "Instance"}, body, "it"))
    assert [each.partition(" is no")[0] for each in told] == [
        "it.scheduling.provisioningModel",
        "it.disks[0].diskSizeGb",
    ]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"instance_type": {"machine_type": "a2-highgpu-4g", "gpu_num": 1}},
            "comes with 4 nvidia-tesla-a100, and .* 1",
        ),
        (
            {"instance_type": {"machine_type": "a2-highgpu-4g", "gpu_num": 4, "gpu_type": "nvidia-l4"}},
            "says gpu_num 4 and gpu_type nvidia-l4",
        ),
        ({"instance_type": {"machine_type": "n1-standard-8", "gpu_num": 2}}, "comes without GPUs"),
        ({"cpu_slots": 3, "cpu_slots_allowed": True}, "has 2 processors, and cpu_slots is 3"),
        ({"instance_type": {"machine_type": "n9-big", "gpu_num": 0}}, "no machines of type n9-big in us-central1-a"),
    ],
)
async def test_the_provider_is_asked_how_many_slots_a_type_has(
    provider: Gcp, engine: ComputeEngine, changes: dict[str, Any], words: str
) -> None:
    """And nothing is made whose slots would not be those that the scheduler counts on."""
    with pytest.raises(OrderRefused, match=words):
        await provider.launch(order(**{"cpu_slots_allowed": False, "cpu_slots": None, **changes}))
    assert engine.instances == {}


async def test_a_machine_lives_no_longer_than_it_may(provider: Gcp, engine: ComputeEngine) -> None:
    """The provider itself deletes it then, whoever else is there."""
    instance = await made(provider, engine, max_run=3600.5)
    assert instance["scheduling"] == {
        "provisioningModel": "STANDARD", "maxRunDuration": {"seconds": "3601"}, "instanceTerminationAction": "DELETE",
    }  # fmt: skip


async def test_a_type_that_comes_with_gpus_gets_no_more(provider: Gcp, engine: ComputeEngine) -> None:
    """They are said by the type alone."""
    wanted = {"machine_type": "a2-highgpu-4g", "gpu_num": 4, "gpu_type": "nvidia-tesla-a100"}
    instance = await made(provider, engine, instance_type=wanted, cpu_slots_allowed=False, cpu_slots=None)
    assert "guestAccelerators" not in instance
    assert instance["scheduling"]["onHostMaintenance"] == "TERMINATE"


async def test_the_same_order_is_carried_out_once(provider: Gcp, engine: ComputeEngine, rented: RentedAtGoogle) -> None:
    """By its request; where the provider has forgotten that, by its name."""
    first = await provider.launch(order())
    assert await provider.launch(order()) == first
    assert "compute.instances.get" not in engine.calls
    assert len(engine.operations) == 1
    engine.requests.clear()
    again = Gcp(ProviderPlace("gcp", f"{PROJECT}/us-central1", rented.url), CLUSTER)
    assert await again.launch(order()) == first
    assert list(engine.instances) == [first.provider_id]
    engine.requests.clear()
    engine.instances[first.provider_id]["labels"] = {}
    with pytest.raises(OrderRefused, match="that is none of this cluster's"):
        await provider.launch(order())


async def test_that_a_zone_lacks_machines_shows_minutes_later(provider: Gcp, engine: ComputeEngine) -> None:
    """The machine was listed until then as one that is not made yet, and its end says why, and of what kind that is."""
    engine.exhausted = {A}
    first = await provider.launch(order("m-1"))
    assert (first.zone, first.ended, first.made) == (A, False, False)
    assert not one(await provider.look()).ended
    failed = one(await provider.look())
    assert (failed.machine_id, failed.ended, failed.cause) == ("m-1", True, RestCause.NO_CAPACITY)
    assert failed.story.startswith("the provider has none of that type there now (ZONE_RESOURCE_POOL_EXHAUSTED_WITH_")


async def test_an_offer_is_one_zone(provider: Gcp, engine: ComputeEngine) -> None:
    """In the order of the settings; each has a name and settings of its own, which are those of the others."""
    offers = gcp_settings(zone=None, zones=[A, B]).each_offer()
    assert [offer.offer_name for offer in offers] == [f"e2-standard-2 in {zone}" for zone in (A, B)]
    assert {offer.offer_family for offer in offers} == {f"e2-standard-2 in {PROJECT}/us-central1"}
    assert len({offer.offer_settings for offer in offers}) == 1
    assert offers[0].offer_settings != gcp_settings(boot_disk_size=300).offer_settings
    for offer, zone in zip(offers, (A, B), strict=True):
        seen = await provider.launch(MachineOrder(f"m-{zone}", "default", offer, "#!/bin/sh"))
        assert seen.zone == zone


async def test_a_refusal_does_not_show_what_the_machine_is_to_keep(provider: Gcp, engine: ComputeEngine) -> None:
    """The provider repeats what it does not like, and a join token stands in it; nor is it without end."""
    engine.refusal = Refused(400, "invalid", f"Invalid value: '{order().user_data}' {'x' * 900}")
    with pytest.raises(OrderRefused) as told:
        await provider.launch(order())
    assert "Invalid value: '...' xxx" in told.value.message
    assert len(told.value.message) < 500


async def test_an_order_that_is_never_carried_out_is_given_up(
    provider: Gcp, engine: ComputeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After operation_timeout_period; it is deleted, should it come."""
    engine.stuck = True
    await provider.launch(order(operation_timeout_period="90s"))
    assert not one(await provider.look()).ended
    now = gcp_module.time.monotonic()
    monkeypatch.setattr(gcp_module.time, "monotonic", lambda: now + 90)
    given_up = one(await provider.look())
    assert given_up.ended
    assert given_up.story == "the provider has not made it within 90 seconds (operation_timeout_period)"
    assert [each["status"] for each in engine.instances.values()] == ["STOPPING"]


async def test_an_order_under_way_is_told_before_the_list_has_it(provider: Gcp, engine: ComputeEngine) -> None:
    """Lists lag behind: a machine that is being made is not missing."""
    engine.stuck = True
    made = await provider.launch(order())
    engine.instances.clear()
    assert one(await provider.look()) == made


async def test_what_has_stopped_is_deleted_by_the_look_that_sees_it(provider: Gcp, engine: ComputeEngine) -> None:
    """Its disk would be paid for ever; what is stopping is there still."""
    seen = await provider.launch(order())
    instance = engine.instances[seen.provider_id]
    for status, ended in (("STOPPING", False), ("REPAIRING", False), ("TERMINATED", True)):
        instance["status"] = status
        assert one(await provider.look()).ended is ended, status
    assert engine.calls[-2:] != []
    assert "compute.instances.delete" in engine.calls[-2:]
    await provider.look()
    assert engine.instances == {}


async def test_a_look_reads_every_page_and_leaves_alone_what_is_not_ours(
    provider: Gcp, engine: ComputeEngine, rented: RentedAtGoogle
) -> None:
    """Nor what another region has; a zone that does not answer is not taken for an empty one."""
    engine.page_size = 2
    names = [(await provider.launch(order(f"m-{number}"))).machine_id for number in range(5)]
    rented.launch({"tenax-cluster": "another"})
    engine.instances["us-east1-b/far"] = {"name": "far", "labels": {"tenax-cluster": CLUSTER}, "status": "RUNNING"}
    assert sorted(each.machine_id for each in await provider.look()) == names
    engine.unreachable = {"us-east1-b"}
    assert len(await provider.look()) == 5
    engine.unreachable = {B}
    with pytest.raises(ProviderAway, match="us-central1-b does not answer"):
        await provider.look()


async def test_what_is_not_there_is_ended_already(provider: Gcp, engine: ComputeEngine) -> None:
    """One that is not there keeps no other from its end."""
    seen = await provider.launch(order())
    await provider.end([f"{A}/nowhere", seen.provider_id])
    assert engine.alive() == []
    await provider.look()
    assert await provider.look() == []


@pytest.mark.parametrize(
    ("refusal", "error", "words"),
    [
        (Refused(403, "quotaExceeded", "Quota 'GPUS' exceeded."), OrderRefused, "quota is used up: .*Quota 'GPUS'"),
        (Refused(403, "forbidden", "Required 'compute.x'"), OrderRefused, "lacks a right: .*Required 'compute.x'"),
        (Refused(400, "invalid", "Invalid value"), OrderRefused, "^invalid: Invalid value$"),
        (Refused(403, "rateLimitExceeded", "Rate"), ProviderAway, "rateLimitExceeded"),
        (Refused(503, "backendError", "Backend"), ProviderAway, "backendError"),
        (Refused(500, "", "?"), ProviderAway, "500"),
    ],
)
async def test_a_refusal_is_told_from_what_nobody_knows(
    provider: Gcp, engine: ComputeEngine, refusal: Refused, error: type[Exception], words: str
) -> None:
    """After the first nothing was made; after the second the same request is made again."""
    engine.refusal = refusal
    with pytest.raises(error, match=words):
        await provider.launch(order())


@pytest.mark.parametrize(
    ("code", "cause"),
    [
        ("ZONE_RESOURCE_POOL_EXHAUSTED", RestCause.NO_CAPACITY),
        ("ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", RestCause.NO_CAPACITY),
        ("QUOTA_EXCEEDED", RestCause.OVER_QUOTA),
        ("PERMISSIONS_ERROR", RestCause.NOT_ALLOWED),
        ("INVALID_FIELD_VALUE", RestCause.BAD_ORDER),
        ("RESOURCE_NOT_FOUND", RestCause.BAD_ORDER),
        ("SOMETHING_NEW", RestCause.REFUSED),
        ("INTERNAL_ERROR", None),
    ],
)
def test_codes_are_known_by_how_they_begin(code: str, cause: RestCause | None) -> None:
    """They grow endings; an order that was refused by one that nobody knows is sent again after a while."""
    refusal = refusal_of_operation({"status": "DONE", "error": {"errors": [{"code": code, "message": ""}]}})
    assert refusal is not None
    assert refusal.cause is cause


def test_without_a_reason_the_status_tells() -> None:
    """And an operation that is not over has no refusal."""
    statuses = {400: "BAD_ORDER", 401: "NOT_ALLOWED", 403: "NOT_ALLOWED", 404: "BAD_ORDER", 412: "REFUSED"}
    for status, name in statuses.items():
        assert refusal_of_answer(status, {}).cause is RestCause[name], status
    assert refusal_of_answer(502, {}).cause is None
    assert refusal_of_operation({"status": "RUNNING", "error": {"errors": [{"code": "x"}]}}) is None


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("Required 'compute.subnetworks.use' permission for 'projects/x'", "a right: allow compute.subnetworks.use ("),
        (
            "The user does not have access to service account 'a@x.iam.gserviceaccount.com'.",
            "a right: allow iam.serviceAccounts.actAs on service_account (",
        ),
        ("Forbidden", "a right: roles/compute.instanceAdmin.v1 has them"),
    ],
)
def test_what_is_not_allowed_names_the_right(message: str, words: str) -> None:
    """Where the provider says which it is; else who has all."""
    error: Any = {"error": {"message": message, "errors": [{"reason": "forbidden"}]}}
    assert words in refusal_of_answer(403, error).words


async def test_without_credentials_nothing_is_known(
    rented: RentedAtGoogle, provider: Gcp, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The first call says so, and no start of a master does."""
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "nothing.json"))
    with pytest.raises(ProviderAway, match="no credentials that can be used"):
        await provider.look()


async def test_without_its_library_the_provider_says_what_to_install(
    provider: Gcp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is loaded by the first call."""
    monkeypatch.setitem(sys.modules, "google.auth", None)
    with pytest.raises(ProviderAway, match=re.escape("pip install 'tenax[gcp]'")):
        await provider.look()
