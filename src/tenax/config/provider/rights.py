"""What a master may have to do at AWS for given settings, as a policy of IAM: each action that it calls, and no other.

Rules:
- Nothing is allowed that the settings have no use for: types, images, networks and keys are those of the offers, as far
  as they name them, and the role of the machines is the only one that is passed on.
- What is made carries the cluster's mark from the beginning, and nothing without it can be ended.
- An audit lists what is left of machines, and deletes what carries the mark.
- With RunInstances AWS asks for the right at each thing that an instance is made of or with, and for those beside it
  that the request implies: its tags, its role, spot machines.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tenax.config.master import PoolSettings
from tenax.config.provider import CLUSTER_MARK, ProviderSettings
from tenax.errors import InvalidInput
from tenax.jsonvalue import Json, JsonObject

_PROFILE = re.compile(r"arn:(aws[a-z-]*):iam::([0-9]{12}):instance-profile/([\w+=,.@/-]+)")
_ROLE = re.compile(r"arn:aws[a-z-]*:iam::[0-9]{12}:role/[\w+=,.@/-]+")
#: How names of regions begin that are no part of the public cloud, and what ARNs there begin with.
_PARTITIONS = (("cn-", "aws-cn"), ("us-gov-", "aws-us-gov"), ("us-isob-", "aws-iso-b"), ("us-iso-", "aws-iso"))
_SPOT = "spot.amazonaws.com"
_OF_OFFERS = ("ec2:DescribeInstanceTypes", "ec2:DescribeSpotPriceHistory", "pricing:GetProducts")
#: Of what an audit lists beside machines, and deletes: the rights, and what ARNs call it.
_LISTS = ("ec2:DescribeVolumes", "ec2:DescribeAddresses", "ec2:DescribeSpotInstanceRequests")
_DELETES = (("ec2:DeleteVolume", "volume"), ("ec2:CancelSpotInstanceRequests", "spot-instances-request"))
#: All that a policy may allow.
PRINTED = frozenset(
    {
        *("ec2:RunInstances", "ec2:CreateTags", "ec2:DescribeInstances", "ec2:TerminateInstances"),
        *("iam:PassRole", "iam:CreateServiceLinkedRole", *_OF_OFFERS, *_LISTS, *(action for action, _ in _DELETES)),
    }
)


@dataclass(frozen=True, slots=True)
class MasterRights:
    """A policy, and what whoever attaches it should know."""

    policy: JsonObject
    #: Roles whose names were taken from those of their instance profiles.
    assumed_roles: tuple[str, ...]
    #: Pools that rent elsewhere, of which the policy says nothing.
    elsewhere: tuple[str, ...]


def master_rights(pools: Iterable[PoolSettings], cluster_id: str = "", roles: Sequence[str] = ()) -> MasterRights:
    """What the master needs at AWS for these pools.

    ``cluster_id``: that of the mark; empty: whichever cluster's. ``roles``: ARNs of those in the machines' instance
    profiles; none: each is called as its profile is. Raises InvalidInput: nothing is rented at AWS; no such ARN; roles
    without a profile.
    """
    renting = [(pool.name, pool.provider) for pool in pools if pool.provider is not None]
    offers = [offer for _, each in renting if isinstance(each, ProviderSettings) for offer in each.each_offer()]
    elsewhere = tuple(name for name, each in renting if not isinstance(each, ProviderSettings))
    if not offers:
        raise InvalidInput(
            "no pool rents machines at AWS by these settings, so the master needs no right there: give a pool a "
            "provider of type aws"
        )
    assumed = _assumed_roles(offers)
    for role in roles:
        if not _ROLE.fullmatch(role):
            raise InvalidInput(f"{role!r} is not the ARN of a role: write arn:aws:iam::123456789012:role/NAME")
    if roles and not assumed:
        raise InvalidInput("no pool has iam_instance_profile_arn, so no role is passed on: leave the role out")
    passed = tuple(dict.fromkeys(roles)) or assumed
    statements: list[Json] = [*_machines(offers, cluster_id), *_implied(offers, passed), *_questions(offers)]
    statements += _audited(offers, cluster_id)
    policy: JsonObject = {"Version": "2012-10-17", "Statement": statements}
    return MasterRights(policy, () if roles else assumed, elsewhere)


def _machines(offers: Sequence[ProviderSettings], cluster_id: str) -> list[Json]:
    """To look at machines, to make and to end them."""
    marked: JsonObject = {f"aws:RequestTag/{CLUSTER_MARK}": cluster_id or "*"}
    ours: JsonObject = {f"aws:ResourceTag/{CLUSTER_MARK}": cluster_id or "*"}
    types = _each(offer.instance_type for offer in offers)
    instances, volumes = _all(offers, "instance"), _all(offers, "volume")
    regions: JsonObject = {"aws:RequestedRegion": _each(offer.region for offer in offers)}
    by_type: JsonObject = {"StringLike": marked, "StringEquals": {"ec2:InstanceType": types}}
    return [
        _allowed("LookAtMachines", "ec2:DescribeInstances", ["*"], {"StringEquals": regions}),
        _allowed("MakeMarkedMachines", "ec2:RunInstances", instances, by_type),
        _allowed("MakeTheirMarkedDisks", "ec2:RunInstances", volumes, {"StringLike": marked}),
        _allowed("MakeThemOfThese", "ec2:RunInstances", _parts(offers)),
        _allowed("EndMarkedMachines", "ec2:TerminateInstances", instances, {"StringLike": ours}),
    ]


def _implied(offers: Sequence[ProviderSettings], roles: Sequence[str]) -> list[Json]:
    """What a request for a machine asks for beside it."""
    created: JsonObject = {"StringEquals": {"ec2:CreateAction": "RunInstances"}}
    tagged = [*_all(offers, "instance"), *_all(offers, "volume")]
    tagged += _all([offer for offer in offers if offer.spot], "spot-instances-request")
    statements: list[Json] = [_allowed("MarkWhatIsMade", "ec2:CreateTags", tagged, created)]
    if roles:
        suffix = ".cn" if any(role.startswith("arn:aws-cn:") for role in roles) else ""
        to_machines: JsonObject = {"StringEquals": {"iam:PassedToService": f"ec2.amazonaws.com{suffix}"}}
        statements.append(_allowed("GiveMachinesTheirRole", "iam:PassRole", _each(roles), to_machines))
    if any(offer.spot for offer in offers):
        # The first spot machine of an account has AWS make a role that the account has from then on.
        its_role = f"role/aws-service-role/{_SPOT}/AWSServiceRoleForEC2Spot"
        arns = _each(f"arn:{_partition(offer.region)}:iam::*:{its_role}" for offer in offers)
        for_spot: JsonObject = {"StringEquals": {"iam:AWSServiceName": _SPOT}}
        statements.append(_allowed("BeginWithSpotMachines", "iam:CreateServiceLinkedRole", arns, for_spot))
    return statements


def _questions(offers: Sequence[ProviderSettings]) -> list[Json]:
    """What is asked of offers that do not say it; AWS limits none of these rights to anything."""
    unpriced = [offer for offer in offers if offer.price is None]
    asks = (
        any(offer.instance_slots < 0 for offer in offers),
        any(offer.spot for offer in unpriced),
        any(not offer.spot for offer in unpriced),
    )
    return [
        _allowed(f"Ask{action.partition(':')[2]}", action, ["*"])
        for action, is_asked in zip(_OF_OFFERS, asks)
        if is_asked
    ]


def _audited(offers: Sequence[ProviderSettings], cluster_id: str) -> list[Json]:
    """What an audit lists, which AWS limits to nothing, and deletes, which carries the mark."""
    regions: JsonObject = {"StringEquals": {"aws:RequestedRegion": _each(offer.region for offer in offers)}}
    ours: JsonObject = {"StringLike": {f"aws:ResourceTag/{CLUSTER_MARK}": cluster_id or "*"}}
    return [
        _allowed("ListWhatIsLeft", list(_LISTS), ["*"], regions),
        *(_allowed(action.partition(":")[2], action, _all(offers, kind), ours) for action, kind in _DELETES),
    ]


def _parts(offers: Sequence[ProviderSettings]) -> list[Json]:
    """ARNs of what instances are made of and with, each as far as the settings name it."""
    arns = []
    for offer in offers:
        at = f"arn:{_partition(offer.region)}:ec2:{offer.region}"
        network = offer.network_interface
        arns += [
            f"{at}::image/{offer.image_id}",
            f"{at}:*:network-interface/*",
            f"{at}:*:subnet/{network.subnet_id or '*'}",
            f"{at}:*:security-group/{network.security_group_id or '*'}",
        ]
        arns += [f"{at}:*:key-pair/{offer.ssh_key_name}"] * bool(offer.ssh_key_name)
        arns += [f"{at}:*:spot-instances-request/*"] * offer.spot
    return _each(arns)


def _assumed_roles(offers: Iterable[ProviderSettings]) -> tuple[str, ...]:
    """The role of each instance profile, were it called as the profile is. Raises InvalidInput."""
    roles: dict[str, None] = {}
    for arn in (offer.iam_instance_profile_arn for offer in offers):
        profile = _PROFILE.fullmatch(arn)
        if arn and profile is None:
            raise InvalidInput(
                f"iam_instance_profile_arn is {arn!r}, which is not the ARN of an instance profile: write "
                "arn:aws:iam::123456789012:instance-profile/NAME"
            )
        if profile is not None:
            roles[f"arn:{profile[1]}:iam::{profile[2]}:role/{profile[3]}"] = None
    return tuple(roles)


def _all(offers: Iterable[ProviderSettings], kind: str) -> list[Json]:
    """ARNs of all things of a kind where something is rented."""
    return _each(f"arn:{_partition(offer.region)}:ec2:{offer.region}:*:{kind}/*" for offer in offers)


def _partition(region: str) -> str:
    return next((partition for begin, partition in _PARTITIONS if region.startswith(begin)), "aws")


def _each(names: Iterable[str]) -> list[Json]:
    return list(dict.fromkeys(names))


def _allowed(
    sid: str, action: str | list[Json], resources: list[Json], condition: JsonObject | None = None
) -> JsonObject:
    statement: JsonObject = {"Sid": sid, "Effect": "Allow", "Action": action, "Resource": resources}
    return {**statement, "Condition": condition} if condition else statement
