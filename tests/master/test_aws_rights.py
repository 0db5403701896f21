"""The master's rights at AWS: with those that are printed a machine lives its whole life, and without one of them not.

What lacks it is named where people look: at the machine, and in what would be rented.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tenax.config.master import PoolSettings
from tenax.config.provider.rights import PRINTED, master_rights
from tenax.errors import InvalidInput
from tenax.master.provision.port import PartKind
from tenax.master.store.machines import rows as machines
from tests.kits.master.scaling import Place, master_settings, place, rented
from tests.kits.object_server import Between
from tests.kits.rented import provider_settings
from tests.kits.rented_gcp import gcp_settings
from tests.kits.rented_rights import PROFILE, ROLE, RentedUnderRights, actions_of, moto_with_rights, without

__all__ = ["master_settings", "place", "rented"]

OTHER_ROLE = "arn:aws-cn:iam::123456789012:role/others/machines"
#: Each with the state in which a machine stays without it.
ACTIONS = {
    "ec2:RunInstances": "FAILED",
    "ec2:CreateTags": "FAILED",
    "iam:PassRole": "FAILED",
    "iam:CreateServiceLinkedRole": "FAILED",
    "ec2:DescribeInstances": "ENDING",
    "ec2:TerminateInstances": "ENDING",
}
#: By what an audit lists each kind, and deletes it; addresses are people's.
AUDITED = {
    PartKind.DISK: ("ec2:DescribeVolumes", "ec2:DeleteVolume"),
    PartKind.ADDRESS: ("ec2:DescribeAddresses", ""),
    PartKind.SPOT_REQUEST: ("ec2:DescribeSpotInstanceRequests", "ec2:CancelSpotInstanceRequests"),
}
OF_AUDITS = {action for actions in AUDITED.values() for action in actions if action}
DELETE_PARTS = "/api/v1/machines/audit/delete-parts"


@pytest.fixture(scope="module")
def server() -> Iterator[RentedUnderRights]:
    """One for the module."""
    with moto_with_rights() as made:
        yield made


@pytest.fixture
def line(rented: RentedUnderRights) -> Between:
    """What asks for rights stands between the master and moto."""
    rented.spot_role = False
    return rented.gate


def printed(place: Place) -> Mapping[str, Any]:
    """What is printed for the settings of the master, and its cluster."""
    master = place.api.master
    return master_rights(master.settings.pools, str(master.cluster.cluster_id)).policy


def _statements(policy: Mapping[str, Any]) -> list[dict[str, Any]]:
    return list(policy["Statement"])


def test_a_policy_names_what_the_settings_name() -> None:
    """Type, image, network and key of each offer, where it is, and what is passed on; no right that has no use."""
    plain = PoolSettings(name="plain", provider=provider_settings(price=0.1))
    rights = master_rights([plain])
    assert actions_of(rights.policy) == {*ACTIONS, *OF_AUDITS} - {"iam:PassRole", "iam:CreateServiceLinkedRole"}
    assert (rights.assumed_roles, rights.elsewhere) == ((), ())
    network = {"subnet_id": "subnet-1", "security_group_id": "sg-1"}
    offers = ({"instance_type": "p4d.24xlarge", "image_id": "ami-2", "network_interface": network},)
    far = provider_settings(
        region="cn-north-1", offers=offers, ssh_key_name="people", iam_instance_profile_arn=PROFILE, spot=True
    )
    google = PoolSettings(name="google", provider=gcp_settings())
    rights = master_rights([plain, PoolSettings(name="far", provider=far), google], "c-1", [OTHER_ROLE])
    text = json.dumps(rights.policy)
    for part in (
        *("us-west-2::image/ami-03cf127a", "aws-cn:ec2:cn-north-1::image/ami-2", "cn-north-1:*:subnet/subnet-1"),
        *("cn-north-1:*:security-group/sg-1", "cn-north-1:*:key-pair/people", '["m5.large", "p4d.24xlarge"]'),
        *("cn-north-1:*:spot-instances-request/*", f'"{OTHER_ROLE}"', '"aws:RequestTag/tenax-cluster": "c-1"'),
        *('"aws:ResourceTag/tenax-cluster": "c-1"', '["us-west-2", "cn-north-1"]'),
    ):
        assert part in text
    renting = [each for each in _statements(rights.policy) if str(each["Action"]) in ACTIONS]
    assert "us-west-2:*:spot-instances-request" not in json.dumps(renting)
    assert (rights.assumed_roles, rights.elsewhere) == ((), ("google",))
    with_profile = PoolSettings(name="plain", provider=provider_settings(iam_instance_profile_arn=PROFILE))
    assert master_rights([with_profile]).assumed_roles == (ROLE,)
    asks = {"ec2:DescribeInstanceTypes", "ec2:DescribeSpotPriceHistory", "pricing:GetProducts"}
    offers = ({"instance_type": "g5.xlarge", "spot": True}, {"instance_type": "g5.xlarge"})
    unsaid = provider_settings(
        offers=offers, cpu_slots_allowed=False, instance_slots=-1, iam_instance_profile_arn=PROFILE
    )
    whole = actions_of(master_rights([PoolSettings(name="p", provider=unsaid)]).policy)
    assert whole == {*ACTIONS, *asks, *OF_AUDITS} == PRINTED


@pytest.mark.parametrize(
    ("changes", "roles", "words"),
    [
        (None, [], "no pool rents machines at AWS"),
        ({"iam_instance_profile_arn": "training"}, [], "iam_instance_profile_arn is 'training'"),
        ({"iam_instance_profile_arn": PROFILE}, [PROFILE], "is not the ARN of a role"),
        ({}, [ROLE], "no pool has iam_instance_profile_arn"),
    ],
)
def test_what_no_policy_can_be_made_of(changes: Any, roles: list[str], words: str) -> None:
    """Says what to write."""
    provider = gcp_settings() if changes is None else provider_settings(**changes)
    with pytest.raises(InvalidInput, match=re.escape(words)):
        master_rights([PoolSettings(name="default", provider=provider)], roles=roles)


async def live(place: Place) -> str:
    """As far as a machine comes: rented for work, it joins, is idle, and ends; its state then."""
    await place.waits()
    await place.passes(2)
    for instance in place.rented.running():
        await place.join(instance)
        await place.execute("update allocations set state = 'TERMINATED', ended_at = now()")
        await place.later(60)
        await place.passes(1)
        await place.execute("update agent_presence set connected = false")
        await place.passes(3)
    [state] = (await place.states()).values()
    return state


async def shown(place: Place) -> tuple[str, str]:
    """Why the machine is as it is; what the plan says of offers, and of what stands in its way."""
    async with place.api.master.db.connection() as conn:
        [row] = await machines.all_of(conn, ended=True)
    [plan] = (await place.api.user.get("/api/v1/machines/plan")).json()["plans"]
    assert all(each["machineIds"] == [row.machine_id] for each in plan["troubles"])
    return row.story, " ".join(each["reason"] for each in [*plan["offers"], *plan["troubles"]])


async def test_with_what_is_printed_a_machine_lives_its_life(place: Place, server: RentedUnderRights) -> None:
    """Each right is asked for in it, and none beside them."""
    policy = printed(place)
    server.attach(policy)
    assert await live(place) == "GONE"
    assert server.running() == []
    assert {each.action for each in server.asked} == actions_of(policy) - OF_AUDITS == set(ACTIONS)
    # The second spot machine of an account needs one less.
    await place.execute("delete from machines")
    server.attach(without(policy, "iam:CreateServiceLinkedRole"))
    assert await live(place) == "GONE"


@pytest.mark.parametrize("action", ACTIONS)
async def test_a_right_that_is_missing_is_named(place: Place, server: RentedUnderRights, action: str) -> None:
    """At the machine and in the plan; given back where a machine is left, its life goes on."""
    policy = printed(place)
    server.attach(without(policy, action))
    assert await live(place) == ACTIONS[action]
    for words in await shown(place):
        assert f"the master's role lacks the right: allow {action}, see tenax machine policy" in words
    if ACTIONS[action] == "FAILED":
        assert server.running() == []
        return
    server.attach(policy)
    await place.later(31)
    await place.passes(3)
    assert list((await place.states()).values()) == ["GONE"]
    assert "allow" not in " ".join(await shown(place))


async def audit(place: Place, kind: PartKind) -> tuple[dict[str, Any], str]:
    """Parts of a kind, by name, and what nobody knows."""
    found = (await place.api.admin.get("/api/v1/machines/audit")).json()
    unknown = " ".join(each["reason"] for each in found["unanswered"])
    return {each["providerId"]: each for each in found["parts"] if each["kind"] == kind.value}, unknown


@pytest.mark.parametrize("kind", AUDITED)
async def test_an_audit_does_with_what_is_printed(place: Place, server: RentedUnderRights, kind: PartKind) -> None:
    """It lists what was left, and deletes it; a right that is missing is named."""
    policy = printed(place)
    lists, deletes = AUDITED[kind]
    mark = {"tenax-cluster": str(place.api.master.cluster.cluster_id)}
    name = server.leave(kind, {**mark, "tenax-machine": "m-" + "1" * 20})
    server.attach(without(policy, lists))
    parts, unknown = await audit(place, kind)
    assert parts == {}
    assert f"allow {lists}, see tenax machine policy" in unknown
    server.attach(policy)
    parts, unknown = await audit(place, kind)
    assert (parts[name]["stray"], unknown) == (bool(deletes), "")
    if deletes:
        body = {"parts": [{each: parts[name][each] for each in ("provider", "region", "kind", "providerId")}]}
        server.attach(without(policy, deletes))
        [refused] = (await place.api.admin.post(DELETE_PARTS, body)).json()["parts"]
        assert f"allow {deletes}, see tenax machine policy" in refused["failure"]
        # What carries another cluster's mark is shown to nobody, and could not be deleted.
        server.attach(master_rights(place.api.master.settings.pools, "another").policy)
        [refused] = (await place.api.admin.post(DELETE_PARTS, body)).json()["parts"]
        assert f"allow {deletes}" in refused["failure"]
        assert name in server.left(kind)
        server.attach(policy)
        [done] = (await place.api.admin.post(DELETE_PARTS, body)).json()["parts"]
        assert done["failure"] == ""
        assert name not in server.left(kind)


async def test_nothing_of_others_can_be_ended_or_used(place: Place, server: RentedUnderRights) -> None:
    """Neither what does not carry the mark of this cluster, nor an image that the settings do not name."""
    server.attach(printed(place))
    await place.waits()
    await place.passes(2)
    [instance] = server.running()
    server.untag(instance)
    await place.join(instance)
    await place.execute("update allocations set state = 'TERMINATED', ended_at = now()")
    await place.later(60)
    await place.passes(2)
    assert server.running() == [instance]
    story, _ = await shown(place)
    assert "it could not be ended yet: the master's role lacks the right: allow ec2:TerminateInstances" in story
    [pool] = place.api.master.settings.pools
    assert pool.provider is not None
    other = pool.provider.model_copy(update={"image_id": "ami-12c6146b"})
    place.loop.use_pools([PoolSettings(name="default", provider=other)])
    await place.execute("delete from machines")
    await place.waits()
    await place.passes(2)
    assert "allow ec2:RunInstances" in (await shown(place))[0]
