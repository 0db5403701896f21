"""AWS's rights before moto: a master's account that may do what its policy says, and nothing else.

moto asks for the right to each call by itself, at ``*`` and without conditions. What AWS asks for beyond that stands
here: the right at each thing that a machine is made of or with, conditions, and what a request for a machine implies.
Both have to allow a request. A policy with what is not known here is an error of the test.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs
from urllib.request import Request, urlopen
from xml.sax.saxutils import escape

import boto3

from tenax.config.provider import ProviderSettings
from tests.kits.object_server import Between, Refusal, between
from tests.kits.rented import ACCOUNT, REGION, RentedAtMoto, moto

NUMBER = "123456789012"
PROFILE = f"arn:aws:iam::{NUMBER}:instance-profile/training"
ROLE = f"arn:aws:iam::{NUMBER}:role/training"
_MASTER = "master"
_AT = f"arn:aws:ec2:{REGION}"
_SPOT = "spot.amazonaws.com"
_SPOT_ROLE = f"arn:aws:iam::{NUMBER}:role/aws-service-role/{_SPOT}/AWSServiceRoleForEC2Spot"
Values = Mapping[str, str]


@dataclass(frozen=True)
class Right:
    """An action at a thing, with what conditions look at."""

    action: str
    resource: str
    context: Values


def actions_of(policy: Mapping[str, Any]) -> set[str]:
    """What a policy allows somewhere."""
    return {action for each in policy["Statement"] for action in _listed(each["Action"])}


def without(policy: Mapping[str, Any], action: str) -> dict[str, Any]:
    """A policy that does not allow an action any more."""
    assert action in actions_of(policy)
    left = [{**each, "Action": [it for it in _listed(each["Action"]) if it != action]} for each in policy["Statement"]]
    return {**policy, "Statement": [each for each in left if each["Action"]]}


def allows(policy: Mapping[str, Any], right: Right) -> bool:
    """Whether a statement does."""
    return any(_holds(statement, right) for statement in policy["Statement"])


def _holds(statement: Mapping[str, Any], right: Right) -> bool:
    assert statement["Effect"] == "Allow"
    assert set(statement) <= {"Sid", "Effect", "Action", "Resource", "Condition"}
    return (
        right.action in _listed(statement["Action"])
        and any(_like(pattern, right.resource) for pattern in _listed(statement["Resource"]))
        and all(
            key in right.context and any(_OPERATORS[operator](value, right.context[key]) for value in _listed(values))
            for operator, keys in statement.get("Condition", {}).items()
            for key, values in keys.items()
        )
    )


def _listed(given: Any) -> list[str]:
    return given if isinstance(given, list) else [given]


def _like(pattern: str, value: str) -> bool:
    return re.fullmatch(re.escape(pattern).replace(r"\*", ".*").replace(r"\?", "."), value) is not None


#: What names a part that is deleted, and what ARNs call it.
_PARTS: Values = {
    "VolumeId": "volume", "SpotInstanceRequestId.1": "spot-instances-request"
}  # fmt: skip
_OPERATORS = {"StringEquals": str.__eq__, "StringLike": _like}


def of_new_machines(form: Values, *, spot_role: bool) -> list[Right]:
    """What RunInstances asks for, in AWS's order. ``spot_role``: the account has the role of spot machines."""
    region = {"aws:RequestedRegion": REGION}
    tags = {kind: _tags(form, kind) for kind in ("instance", "volume", "spot-instances-request")}
    is_spot = form.get("InstanceMarketOptions.MarketType") == "spot"
    subnet = form.get("NetworkInterface.1.SubnetId", "subnet-usual")
    group = form.get("NetworkInterface.1.SecurityGroupId.1", "sg-usual")
    used = [f"{_AT}::image/{form['ImageId']}"] + [
        f"{_AT}:{NUMBER}:{name}"
        for name in (
            *(f"subnet/{subnet}", f"security-group/{group}", "network-interface/*"),
            *([f"key-pair/{form['KeyName']}"] if "KeyName" in form else []),
            *(["spot-instances-request/*"] if is_spot else []),
        )
    ]
    by_type = {"ec2:InstanceType": form["InstanceType"]}
    rights = [
        Right("ec2:RunInstances", f"{_AT}:{NUMBER}:instance/*", {**region, **by_type, **tags["instance"]}),
        Right("ec2:RunInstances", f"{_AT}:{NUMBER}:volume/*", {**region, **tags["volume"]}),
        *(Right("ec2:RunInstances", each, region) for each in used),
    ]
    created = {**region, "ec2:CreateAction": "RunInstances"}
    for kind, its in tags.items():
        rights += [Right("ec2:CreateTags", f"{_AT}:{NUMBER}:{kind}/*", {**created, **its})] * bool(its)
    if "IamInstanceProfile.Arn" in form:
        assert form["IamInstanceProfile.Arn"] == PROFILE
        rights.append(Right("iam:PassRole", ROLE, {"iam:PassedToService": "ec2.amazonaws.com"}))
    if is_spot and not spot_role:
        rights.append(Right("iam:CreateServiceLinkedRole", _SPOT_ROLE, {"iam:AWSServiceName": _SPOT}))
    return rights


def _tags(form: Values, kind: str) -> dict[str, str]:
    """What is written on a kind of thing as it is made."""
    its = [key.rpartition(".")[0] for key, value in form.items() if key.endswith(".ResourceType") and value == kind]
    keys = [key for key in form if any(key.startswith(f"{each}.Tag.") for each in its) and key.endswith(".Key")]
    return {f"aws:RequestTag/{form[key]}": form[f"{key.removesuffix('.Key')}.Value"] for key in keys}


@dataclass
class RentedUnderRights(RentedAtMoto):
    """What there is at moto's server; the master comes by `gate`, with keys of its own."""

    gate: Between = field(kw_only=True)
    iam: Any = field(kw_only=True)
    account: Mapping[str, str] = field(kw_only=True)
    #: What was asked for since the policy was attached.
    asked: list[Right] = field(default_factory=list)
    #: A spot machine was made in this account.
    spot_role: bool = False
    _policy: Mapping[str, Any] = field(default_factory=lambda: {"Statement": []})

    def settings(self, **changes: Any) -> ProviderSettings:
        """Of a pool of spot machines with a role, and with what need not be asked."""
        return super().settings(**{"spot": True, "price": 0.1, "iam_instance_profile_arn": PROFILE, **changes})

    def attach(self, policy: Mapping[str, Any]) -> None:
        """The master may do this from now on. moto refuses what is no policy."""
        self._policy, self.asked = policy, []
        made = self.iam.create_policy(PolicyName="printed", PolicyDocument=json.dumps(policy))
        self.iam.delete_policy(PolicyArn=made["Policy"]["Arn"])
        plain = {"Effect": "Allow", "Action": sorted(actions_of(policy)), "Resource": "*"}
        document = json.dumps({"Version": "2012-10-17", "Statement": [plain]})
        self.iam.put_user_policy(UserName=_MASTER, PolicyName="rights", PolicyDocument=document)

    def judge(self, body: bytes) -> Refusal | None:
        """Whether the policy allows a request, as AWS says that it does not."""
        form = {key: value[-1] for key, value in parse_qs(body.decode(), keep_blank_values=True).items()}
        rights = self._rights(form)
        self.asked += rights
        refused = next((each for each in rights if not allows(self._policy, each)), None)
        if refused is None:
            self.spot_role |= any(each.resource == _SPOT_ROLE for each in rights)
            return None
        if refused.resource == _SPOT_ROLE:
            message = "The provided credentials do not have permission to create the service-linked role for EC2 Spot."
            return _refusal("AuthFailure.ServiceLinkedRoleCreationNotPermitted", message)
        return _refusal(
            "UnauthorizedOperation",
            f"You are not authorized to perform this operation. User: arn:aws:iam::{NUMBER}:user/{_MASTER} is not "
            f"authorized to perform: {refused.action} on resource: {refused.resource} because no identity-based policy "
            f"allows the {refused.action} action. Encoded authorization failure message: 4oFbDw",
        )

    def _rights(self, form: Values) -> Sequence[Right]:
        region = {"aws:RequestedRegion": REGION}
        match form["Action"]:
            case "RunInstances":
                return of_new_machines(form, spot_role=self.spot_role)
            case "TerminateInstances":
                marks = self._marks()
                return [
                    Right(
                        "ec2:TerminateInstances", f"{_AT}:{NUMBER}:instance/{each}", {**region, **marks.get(each, {})}
                    )
                    for key, each in form.items()
                    if key.startswith("InstanceId.")
                ]
            case "DeleteVolume" | "CancelSpotInstanceRequests" as action:
                [(key, kind)] = [(key, kind) for key, kind in _PARTS.items() if key in form]
                marks = self._marks_of_parts().get(form[key], {})
                return [Right(f"ec2:{action}", f"{_AT}:{NUMBER}:{kind}/{form[key]}", {**region, **marks})]
            case action:
                return [Right(f"ec2:{action}", "*", region)]

    def _marks_of_parts(self) -> dict[str, dict[str, str]]:
        return {
            each["ResourceId"]: {f"aws:ResourceTag/{each['Key']}": each["Value"]}
            for each in self._client.describe_tags(Filters=[{"Name": "key", "Values": ["tenax-cluster"]}])["Tags"]
        }

    def _marks(self) -> dict[str, dict[str, str]]:
        return {
            each["InstanceId"]: {f"aws:ResourceTag/{tag['Key']}": tag["Value"] for tag in each.get("Tags", [])}
            for each in self.instances()
        }


def _refusal(code: str, message: str) -> Refusal:
    error = f"<Error><Code>{code}</Code><Message>{escape(message)}</Message></Error>"
    body = f"<?xml version='1.0'?><Response><Errors>{error}</Errors><RequestID>1</RequestID></Response>"
    return Refusal(body.encode(), {"Content-Type": "text/xml"})


@contextmanager
def moto_with_rights() -> Iterator[RentedUnderRights]:
    """moto's server, which asks for rights as soon as there is somebody who has them all; the master has none yet."""
    with moto() as open_to_all, between(open_to_all.url) as gate:
        url = open_to_all.url
        keys = {"aws_access_key_id": "someone", "aws_secret_access_key": "something"}
        people = boto3.client("iam", endpoint_url=url, region_name=REGION, **keys)
        its = {}
        for name in ("admin", _MASTER):
            people.create_user(UserName=name)
            made = people.create_access_key(UserName=name)["AccessKey"]
            its[name] = made["AccessKeyId"], made["SecretAccessKey"]
        everything = {"Effect": "Allow", "Action": "*", "Resource": "*"}
        document = json.dumps({"Version": "2012-10-17", "Statement": [everything]})
        people.put_user_policy(UserName="admin", PolicyName="all", PolicyDocument=document)
        people.create_role(RoleName="training", AssumeRolePolicyDocument=json.dumps({"Statement": []}))
        people.create_instance_profile(InstanceProfileName="training")
        people.add_role_to_instance_profile(InstanceProfileName="training", RoleName="training")
        admin = dict(zip(("aws_access_key_id", "aws_secret_access_key"), its["admin"], strict=True))
        master = dict(zip(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), its[_MASTER], strict=True))
        iam = boto3.client("iam", endpoint_url=url, region_name=REGION, **admin)
        rented = RentedUnderRights(url, admin, gate=gate, iam=iam, account={**ACCOUNT, **master})
        gate.judge = rented.judge
        _ask_for_rights(url, "0")
        try:
            yield rented
        finally:
            _ask_for_rights(url, "inf")


def _ask_for_rights(url: str, after: str) -> None:
    """moto asks after so many calls."""
    plain = {"Content-Type": "text/plain"}
    urlopen(Request(f"{url}/moto-api/reset-auth", data=after.encode(), headers=plain)).close()
