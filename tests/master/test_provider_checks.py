"""What of settings is not so at a provider: told before anything is rented, with where it stands and what to write."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from tenax.config.master import PoolSettings
from tenax.config.provider.gcp import AnyProviderSettings
from tenax.master.loops.offer_news import OfferNews
from tenax.master.provision.aws import Aws, refusal
from tenax.master.provision.aws_check import findings
from tenax.master.provision.checks import checked
from tenax.master.provision.gcp import Gcp
from tenax.master.provision.port import ProviderFinding, ProviderPlace
from tests.kits.compute_engine import PROJECT, SUBNETWORK
from tests.kits.rented import ACCOUNT, REGION, RentedAtMoto, moto, provider_settings
from tests.kits.rented_gcp import RentedAtGoogle, gcp_settings, google

#: One for all tests: a client takes a second to make.
AWS: dict[str, Aws] = {}
G5: Mapping[str, Any] = {"instance_type": "g5.12xlarge", "instance_slots": 4, "cpu_slots_allowed": False}


@pytest.fixture(scope="module")
def at_moto() -> Iterator[RentedAtMoto]:
    """One server for the module: it takes a while to begin."""
    with moto() as rented:
        yield rented


@pytest.fixture(scope="module")
def at_google(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RentedAtGoogle]:
    with google(tmp_path_factory.mktemp("google")) as rented:
        yield rented


@pytest.fixture(autouse=True)
def account(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in ACCOUNT.items():
        monkeypatch.setenv(name, value)


def of_aws(at_moto: RentedAtMoto, **changes: Any) -> list[tuple[str, str, str]]:
    """What a look at moto shows of settings."""
    settings = provider_settings(endpoint_url=at_moto.url, **changes)
    aws = AWS.setdefault(at_moto.url, Aws(ProviderPlace("aws", REGION, at_moto.url), "c"))
    looks = asyncio.run(checked(settings, aws))
    return [(each.path, each.problem, each.instead) for each in looks]


def test_nothing_is_found_where_all_is_there(at_moto: RentedAtMoto) -> None:
    """And nothing was made."""
    assert of_aws(at_moto) == []
    assert of_aws(at_moto, **{**G5, "instance_slots": -1}, zones=("us-west-2a",)) == []
    assert at_moto.instances() == []


@pytest.mark.parametrize(
    ("changes", "path", "problem", "instead"),
    [
        ({"instance_type": "g99.huge"}, "instance_type", "no machines of type g99.huge in us-west-2", "type that AWS"),
        ({"cpu_slots_allowed": False}, "instance_type", "m5.large has no GPU", "cpu_slots_allowed: true"),
        ({**G5, "instance_slots": 8}, "instance_slots", "has 4 GPUs, and instance_slots is 8", "write 4, or leave"),
        ({**G5, "zones": ("us-west-2d",)}, "zones", "g5.12xlarge is not to be had in us-west-2d", "us-west-2a"),
        ({"image_id": "ami-0000000000000000f"}, "image_id", "no image ami-0000000000000000f", "each has its own"),
        ({"instance_type": "m6g.large"}, "image_id", "is for x86_64, and m6g.large has arm64", "an image for arm64"),
        ({"root_device_name": "/dev/xvda"}, "root_device_name", "is called /dev/sda1", "root_device_name: /dev/sda1"),
        (
            {"network_interface": {"subnet_id": "subnet-0"}},
            "network_interface.subnet_id",
            "there is no subnet subnet-0 in us-west-2",
            "of that region",
        ),
        (
            {"network_interface": {"security_group_id": "sg-0"}},
            "network_interface.security_group_id",
            "there is no security group sg-0",
            "of the subnet's network",
        ),
        ({"ssh_key_name": "nobodys"}, "ssh_key_name", "there is no key pair nobodys", "leave it out"),
        (
            {"iam_instance_profile_arn": "arn:aws:iam::123456789012:instance-profile/nope"},
            "iam_instance_profile_arn",
            "there is no instance profile nope",
            "instance-profile/NAME",
        ),
        (
            {"iam_instance_profile_arn": "arn:aws:iam::123456789012:role/x"},
            "iam_instance_profile_arn",
            "is no ARN of an instance profile",
            "instance-profile/NAME",
        ),
        (
            {"offers": ({}, {"instance_type": "g99.huge"})},
            "offers[1].instance_type",
            "no machines of type g99.huge",
            "write a type",
        ),
    ],
)
def test_what_is_not_at_aws(
    at_moto: RentedAtMoto, changes: dict[str, Any], path: str, problem: str, instead: str
) -> None:
    """Where it stands, what is wrong, and what to write: once each."""
    [finding] = of_aws(at_moto, **changes)
    assert finding[0] == path
    assert problem in finding[1]
    assert instead in finding[2]


def test_all_is_told_at_once(at_moto: RentedAtMoto) -> None:
    """Whoever mends a file does it in one round."""
    looks = of_aws(at_moto, instance_type="g99.huge", image_id="ami-0f", ssh_key_name="nobodys")
    assert [path for path, _, _ in looks] == ["instance_type", "image_id", "ssh_key_name"]


def test_a_subnet_has_a_way_out_that_serves_the_machines(at_moto: RentedAtMoto) -> None:
    """None, an internet gateway with and without a public address; and a group of another network."""
    ec2: Any = at_moto._client
    vpc = ec2.create_vpc(CidrBlock="10.7.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.7.1.0/24")["Subnet"]["SubnetId"]
    [(path, problem, _)] = of_aws(at_moto, network_interface={"subnet_id": subnet})
    assert (path, "has no way out" in problem) == ("network_interface.subnet_id", True)
    gateway = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=vpc)
    [table] = ec2.describe_route_tables(Filters=[{"Name": "vpc-id", "Values": [vpc]}])["RouteTables"]
    ec2.create_route(RouteTableId=table["RouteTableId"], DestinationCidrBlock="0.0.0.0/0", GatewayId=gateway)
    assert of_aws(at_moto, network_interface={"subnet_id": subnet}) == []
    [(path, problem, _)] = of_aws(at_moto, network_interface={"subnet_id": subnet, "public_ip": False})
    assert (path, "serves no machine without" in problem) == ("network_interface.public_ip", True)
    group = ec2.create_security_group(GroupName="elsewhere", Description="x")["GroupId"]
    both = {"subnet_id": subnet, "security_group_id": group}
    [(path, problem, _)] = of_aws(at_moto, network_interface=both)
    assert path == "network_interface.security_group_id"
    assert f"and the subnet of {vpc}" in problem


def test_rights_that_are_missing_are_told_together(at_moto: RentedAtMoto) -> None:
    """moto allows everything: what it would be asked is refused here as AWS refuses it."""
    aws = Aws(ProviderPlace("aws", REGION, at_moto.url), "c")
    denied = {"run_instances": "iam:PassRole", "terminate_instances": "ec2:TerminateInstances"}
    denied |= {"describe_images": "ec2:DescribeImages"}

    def call(service: str, name: str, parameters: Mapping[str, object]) -> Mapping[str, object]:
        if name in denied:
            raise refusal("UnauthorizedOperation", f"not authorized to perform: {denied[name]} on resource: *")
        return aws.call(service, name, parameters)

    listed = findings(provider_settings(), call, lambda offer: {"MinCount": 1, "MaxCount": 1})
    assert [(each.path, each.problem.partition(" (")[0]) for each in listed] == [
        ("image_id", "nobody could look at it: the master's role lacks the right: allow ec2:DescribeImages"),
        (
            "",
            "ec2:TerminateInstances is refused: the master's role lacks the right: allow ec2:TerminateInstances, "
            "see tenax machine policy",
        ),
        (
            "",
            "ec2:RunInstances is refused: the master's role lacks the right: allow iam:PassRole, "
            "see tenax machine policy",
        ),
    ]


def test_a_provider_that_is_away_is_told_once() -> None:
    """Not once for each thing that could not be looked at."""
    settings = provider_settings(endpoint_url="http://127.0.0.1:9")
    [finding] = asyncio.run(checked(settings, Aws(ProviderPlace("aws", REGION, "http://127.0.0.1:9"), "c")))
    assert finding.problem.startswith("the provider does not answer: ")


def test_a_key_that_others_can_read_is_told(
    at_moto: RentedAtMoto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the variable that names its file."""
    keys = tmp_path / "credentials"
    keys.write_text("[default]\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(keys))
    keys.chmod(0o640)
    [(path, problem, instead)] = of_aws(at_moto)
    assert path == "AWS_SHARED_CREDENTIALS_FILE"
    assert problem.endswith(f"may read or write {keys}")
    assert instead == f"chmod 600 {keys}"
    keys.chmod(0o600)
    assert of_aws(at_moto) == []


def of_google(at_google: RentedAtGoogle, monkeypatch: pytest.MonkeyPatch, **changes: Any) -> list[tuple[str, str, str]]:
    for name, value in at_google.account.items():
        monkeypatch.setenv(name, value)
    Path(at_google.account["GOOGLE_APPLICATION_CREDENTIALS"]).chmod(0o600)
    settings = gcp_settings(endpoint_url=at_google.url, **changes)
    place = ProviderPlace("gcp", settings.region, at_google.url)
    return [(each.path, each.problem, each.instead) for each in asyncio.run(checked(settings, Gcp(place, "c")))]


T4 = {"machine_type": "n1-standard-8", "gpu_type": "nvidia-tesla-t4", "gpu_num": 2}
GPUS: Mapping[str, Any] = {"cpu_slots_allowed": None, "cpu_slots": None}


@pytest.mark.parametrize(
    ("changes", "path", "problem"),
    [
        ({"instance_type": {"machine_type": "e9-huge", "gpu_num": 0}}, "instance_type.machine_type", "type e9-huge in"),
        ({"cpu_slots": 3}, "instance_type", "e2-standard-2 has 2 processors, and cpu_slots is 3"),
        ({**GPUS, "instance_type": {**T4, "gpu_type": "nvidia-x"}}, "instance_type.gpu_type", "no nvidia-x in us-"),
        ({**GPUS, "instance_type": {**T4, "gpu_num": 8}}, "instance_type.gpu_num", "at most 4 nvidia-tesla-t4"),
        ({"boot_disk_source_image": f"projects/{PROJECT}/global/images/no"}, "boot_disk_source_image", "no image"),
        (
            {"instance_type": {"machine_type": "t2a-standard-2", "gpu_num": 0}},
            "boot_disk_source_image",
            "the image is for X86_64, and t2a-standard-2 has ARM64",
        ),
        ({"network_interface": {"subnetwork": f"{SUBNETWORK}x"}}, "network_interface.subnetwork", "no subnetwork"),
        (
            {"network_interface": {"subnetwork": SUBNETWORK.replace("central1", "east1")}},
            "network_interface.subnetwork",
            "is of another region",
        ),
        (
            {"network_interface": {"subnetwork": SUBNETWORK, "external_ip": True}},
            "network_interface.subnetwork",
            "the master's account lacks compute.subnetworks.useExternalIp",
        ),
    ],
)
def test_what_is_not_at_google(
    at_google: RentedAtGoogle, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], path: str, problem: str
) -> None:
    """As at AWS; each once."""
    at_google.engine.reset()
    [finding] = of_google(at_google, monkeypatch, **changes)
    assert finding[0] == path
    assert problem in finding[1]
    assert finding[2]


def test_what_nobody_may_look_at_at_google_names_the_right(
    at_google: RentedAtGoogle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a network without a way out."""
    at_google.engine.reset()
    assert of_google(at_google, monkeypatch, network_interface={"subnetwork": SUBNETWORK}) == []
    at_google.engine.forbidden = {"compute.images.get"}
    at_google.engine.resources.clear()
    image, way_out = of_google(at_google, monkeypatch)
    assert image[2] == "allow compute.images.get, or look yourself"
    assert way_out[0] == "network_interface.external_ip"


class Asked:
    """A provider that finds something, and counts how often it was asked."""

    times = 0

    async def check(self, settings: AnyProviderSettings) -> list[ProviderFinding]:
        self.times += 1
        return [ProviderFinding("image_id", "there is no image x", "write another")]


async def test_what_is_found_is_in_the_log_once_with_the_settings() -> None:
    """At the start and with new settings; nothing else follows from it."""
    provider: Any = Asked()
    pool = PoolSettings(name="default", provider=provider_settings(price=1.0))
    loop = OfferNews([pool], "c", lambda place, cluster_id: provider)
    with capture_logs() as lines:
        await loop._check()
        await loop._check()
        loop.use_pools([pool])
        await loop._check()
    assert provider.times == 2
    assert [(line["pool"], line["setting"], line["instead"]) for line in lines] == [
        ("default", "image_id", "write another")
    ] * 2
