"""Machines that are rented in tests: settings of a pool, moto's server as the provider, and doubles of the machines.

A double of a machine reads the user data of an instance that runs, and executes it as the machine would: the real
script, with a directory of its own and a ``shutdown`` that notes what it was told; where that is to be now, the
instance becomes what its provider makes of one without power. The double is killed when the instance is terminated, or
has stopped, with all that it has started.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Protocol

import boto3
import psutil
from moto.backends import get_backend as moto_backend

from tenax.config.provider import ProviderSettings
from tenax.master.provision.port import PartKind
from tests.kits.machine import processes
from tests.kits.object_server import s3_server

#: One that moto has.
IMAGE = "ami-03cf127a"
REGION = "us-west-2"
ACCOUNT: Mapping[str, str] = {
    "AWS_ACCESS_KEY_ID": "someone", "AWS_SECRET_ACCESS_KEY": "something", "AWS_CONFIG_FILE": "/dev/null",
    "AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "AWS_EC2_METADATA_DISABLED": "true",
}  # fmt: skip


def provider_settings(**changes: Any) -> ProviderSettings:
    """Machines of two slots of a CPU, at a provider on this machine."""
    usual: dict[str, Any] = {
        "type": "aws",
        "master_url": "http://127.0.0.1:1",
        "endpoint_url": "http://127.0.0.1:2",
        "region": REGION,
        "image_id": IMAGE,
        "instance_type": "m5.large",
        "instance_slots": 2,
        "cpu_slots_allowed": True,
    }
    return ProviderSettings.model_validate({**usual, **changes})


@dataclass
class RentedAtMoto:
    """What there is at moto's server, as its account sees it."""

    url: str
    #: Of who looks, and of who meddles.
    keys: Mapping[str, str] = field(
        default_factory=lambda: {"aws_access_key_id": "someone", "aws_secret_access_key": "something"}
    )
    _client: Any = field(init=False)

    account = ACCOUNT
    people_mark = ("managed_by", "tenax")
    wrong_subnet = "network_interface.subnet_id is none of that region (InvalidSubnetID"

    def __post_init__(self) -> None:
        self._client = boto3.client("ec2", endpoint_url=self.url, region_name=REGION, **self.keys)

    def settings(self, **changes: Any) -> ProviderSettings:
        """Of a pool."""
        return provider_settings(**changes)

    def wrong_settings(self, url: str) -> ProviderSettings:
        """Of a pool whose orders are refused."""
        return provider_settings(endpoint_url=url, network_interface={"subnet_id": "subnet-nowhere"})

    def instances(self) -> list[dict[str, Any]]:
        """All, the ended ones too."""
        pages = self._client.get_paginator("describe_instances").paginate()
        return [each for page in pages for group in page["Reservations"] for each in group["Instances"]]

    def running(self) -> list[str]:
        """Ids of those that were not ended."""
        return [each["InstanceId"] for each in self.instances() if each["State"]["Name"] == "running"]

    def up(self) -> list[str]:
        """Ids of those that have power."""
        return self.running()

    def marks(self, instance: str) -> Mapping[str, str]:
        """Its tags."""
        [tags] = [each["Tags"] for each in self.instances() if each["InstanceId"] == instance]
        return {tag["Key"]: tag["Value"] for tag in tags}

    def user_data(self, instance: str) -> str:
        """What it runs when it is up."""
        import base64

        told = self._client.describe_instance_attribute(InstanceId=instance, Attribute="userData")
        return base64.b64decode(told["UserData"]["Value"]).decode()

    def terminate(self, instance: str) -> None:
        """By somebody else."""
        self._client.terminate_instances(InstanceIds=[instance])

    def lose_power(self, instance: str) -> None:
        """By its own doing."""
        told = self._client.describe_instance_attribute(
            InstanceId=instance, Attribute="instanceInitiatedShutdownBehavior"
        )
        if told["InstanceInitiatedShutdownBehavior"]["Value"] == "terminate":
            self.terminate(instance)
        else:
            self._client.stop_instances(InstanceIds=[instance])

    def untag(self, instance: str) -> None:
        """By somebody who tidies up."""
        self._client.delete_tags(Resources=[instance], Tags=[{"Key": "tenax-cluster"}])

    def leave(self, kind: PartKind, tags: Mapping[str, str], holder: str = "") -> str:
        """A part beside machines, made by somebody else; what it is called."""
        listed = [{"Key": key, "Value": value} for key, value in tags.items()]

        def marked(of: str) -> list[dict[str, Any]]:
            return [{"ResourceType": of, "Tags": listed}]

        if kind is PartKind.DISK:
            made = self._client.create_volume(
                AvailabilityZone=f"{REGION}a", Size=50, TagSpecifications=marked("volume")
            )
            if holder:
                self._client.attach_volume(VolumeId=made["VolumeId"], InstanceId=holder, Device="/dev/sdh")
            return str(made["VolumeId"])
        if kind is PartKind.ADDRESS:
            made = self._client.allocate_address(Domain="vpc", TagSpecifications=marked("elastic-ip"))
            if holder:
                self._client.associate_address(AllocationId=made["AllocationId"], InstanceId=holder)
            return str(made["AllocationId"])
        made = self._client.request_spot_instances(
            LaunchSpecification={"ImageId": IMAGE, "InstanceType": "m5.large"},
            TagSpecifications=marked("spot-instances-request"), SpotPrice="0.1",
        )["SpotInstanceRequests"][0]  # fmt: skip
        self.terminate(made["InstanceId"])
        # moto fulfils each at once; this one waits.
        request = moto_backend("ec2")["123456789012"][REGION].spot_instance_requests[made["SpotInstanceRequestId"]]
        request.state, request.instance = "open", SimpleNamespace(id="")
        return str(made["SpotInstanceRequestId"])

    def left(self, kind: PartKind) -> list[str]:
        """What there is of a kind that carries marks."""
        by_mark = [{"Name": "tag-key", "Values": ["tenax-cluster"]}]
        if kind is PartKind.DISK:
            return [it["VolumeId"] for it in self._client.describe_volumes(Filters=by_mark)["Volumes"]]
        if kind is PartKind.ADDRESS:
            return [it["AllocationId"] for it in self._client.describe_addresses(Filters=by_mark)["Addresses"]]
        requests = self._client.describe_spot_instance_requests(Filters=by_mark)["SpotInstanceRequests"]
        return [it["SpotInstanceRequestId"] for it in requests if it["State"] not in ("cancelled", "closed")]

    def launch(self, tags: Mapping[str, str]) -> str:
        """By somebody else; its id."""
        listed = [{"Key": key, "Value": value} for key, value in tags.items()]
        made = self._client.run_instances(
            ImageId=IMAGE, MinCount=1, MaxCount=1, TagSpecifications=[{"ResourceType": "instance", "Tags": listed}]
        )
        return str(made["Instances"][0]["InstanceId"])


@contextmanager
def moto() -> Iterator[RentedAtMoto]:
    """moto's server, with nothing rented."""
    with s3_server() as url:
        import urllib.request

        urllib.request.urlopen(urllib.request.Request(f"{url}/moto-api/reset", method="POST")).close()
        yield RentedAtMoto(url)


_SHUTDOWN = """#!/bin/sh
echo "$@" >> "$TENAX_MACHINE_DIR/shutdown.log"
"""


class Rented(Protocol):
    """What there is at the server of a provider's protocol, as an account sees it."""

    def up(self) -> list[str]: ...
    def user_data(self, instance: str) -> str: ...
    def lose_power(self, instance: str) -> None: ...


class MachineDoubles:
    """Executes the user data of each instance that runs."""

    def __init__(
        self,
        rented: Rented,
        directory: Path,
        also: Callable[[str], Mapping[str, str]] = lambda instance: {},
        inside: Callable[[str], Sequence[str]] = lambda instance: (),
    ) -> None:
        """``also``: what the environment of a machine holds beside the usual, by instance. ``inside``: what its command
        line begins with, where it has a network of its own; asked first."""
        self._also = also
        self._inside = inside
        self._rented = rented
        self._directory = directory
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        #: What is rented while it is clear gets its power later.
        self.powered = threading.Event()
        self.powered.set()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="machines")
        programs = directory / "bin"
        programs.mkdir(parents=True)
        (programs / "shutdown").write_text(_SHUTDOWN)
        (programs / "shutdown").chmod(0o755)
        self._path = f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}"

    def directory(self, instance: str) -> Path:
        """Of a machine: what its script and its agent keep there."""
        return self._directory / instance

    @contextmanager
    def running(self) -> Iterator[MachineDoubles]:
        self._thread.start()
        try:
            yield self
        finally:
            self._over.set()
            self._thread.join()
            for instance in list(self._processes):
                self._power_off(instance)

    def _run(self) -> None:
        while not self._over.wait(0.2):
            running = set(self._rented.up())
            for instance in (running - self._processes.keys()) if self.powered.is_set() else ():
                self._power_on(instance)
            for instance in self._processes.keys() - running:
                self._power_off(instance)
            for instance in self._processes.keys() & running:
                told = self.directory(instance) / "shutdown.log"
                if told.exists() and "-P now" in told.read_text().splitlines():
                    self._rented.lose_power(instance)

    def agent_of(self, instance: str) -> psutil.Process | None:
        """The agent that runs there."""
        own = ["--dir", f"{self.directory(instance)}/agent"]
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                words = process.cmdline()
                if own[1] in words and words[words.index(own[1]) - 1] == own[0]:
                    return process
        return None

    def _power_on(self, instance: str) -> None:
        place = self.directory(instance)
        place.mkdir(parents=True)
        script = place / "user-data"
        script.write_text(self._rented.user_data(instance))
        inside = self._inside(instance)
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("DET_", "TENAX_"))}
        environment = {
            **kept, "PATH": self._path, "TENAX_MACHINE_DIR": str(place), "HOME": str(place),
            "TENAX_AGENT_RUNTIME": "process", **self._also(instance),
        }  # fmt: skip
        with (place / "console.log").open("ab") as console:
            self._processes[instance] = subprocess.Popen(
                [*inside, "sh", str(script)],
                env=environment, cwd=place, stdout=console, stderr=console, start_new_session=True,
            )  # fmt: skip

    def pull(self, instance: str) -> None:
        """Its power goes, without a word to anybody."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._processes[instance].pid, signal.SIGKILL)
        # What its agent has started is in groups of its own.
        for pid, environment in processes():
            if str(self.directory(instance)).encode() in environment:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def _power_off(self, instance: str) -> None:
        self.pull(instance)
        self._processes.pop(instance).wait()
