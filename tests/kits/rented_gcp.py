"""Machines that are rented at the double of Compute Engine, as `tests.kits.rented` has them at moto's server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tenax.config.provider.gcp import GcpSettings
from tenax.master.provision.port import PartKind
from tests.kits.compute_engine import IMAGE, NETWORK, PROJECT, ZONES, ComputeEngine, compute_engine

REGION = "us-central1"


def gcp_document(**changes: Any) -> dict[str, Any]:
    """What a pool says of machines of two slots of a CPU, at a provider on this machine."""
    usual = {
        "type": "gcp", "master_url": "http://127.0.0.1:1", "endpoint_url": "http://127.0.0.1:2", "project": PROJECT,
        "zone": ZONES[0], "boot_disk_source_image": IMAGE, "cpu_slots_allowed": True, "cpu_slots": 2,
        "instance_type": {"machine_type": "e2-standard-2", "gpu_num": 0},
    }  # fmt: skip
    return {name: value for name, value in {**usual, **changes}.items() if value is not None}


def gcp_settings(**changes: Any) -> GcpSettings:
    """The same, read."""
    return GcpSettings.model_validate(gcp_document(**changes), strict=False)


@dataclass
class RentedAtGoogle:
    """What there is at the double, as its account sees it."""

    url: str
    engine: ComputeEngine
    account: Mapping[str, str]

    people_mark = ("managed-by", "tenax")
    wrong_subnet = "Invalid value for field 'resource.networkInterfaces[0]'"

    def settings(self, **changes: Any) -> GcpSettings:
        """Of a pool."""
        return gcp_settings(**changes)

    def wrong_settings(self, url: str) -> GcpSettings:
        """Of a pool whose orders are refused."""
        return gcp_settings(endpoint_url=url, network_interface={"network": NETWORK, "subnetwork": "nowhere"})

    def running(self) -> list[str]:
        """Ids of those that were not ended."""
        return self.engine.alive()

    def up(self) -> list[str]:
        """Ids of those that have power."""
        return self.engine.alive("RUNNING")

    def marks(self, instance: str) -> Mapping[str, str]:
        """Its labels."""
        return dict(self.engine.instances[instance]["labels"])

    def user_data(self, instance: str) -> str:
        """What it runs when it is up."""
        items = self.engine.instances[instance]["metadata"]["items"]
        return next(str(item["value"]) for item in items if item["key"] == "startup-script")

    def terminate(self, instance: str) -> None:
        """By somebody else."""
        with self.engine.lock:
            self.engine.instances.pop(instance, None)

    def lose_power(self, instance: str) -> None:
        """By its own doing: it is there still, as a stopped one."""
        with self.engine.lock:
            self.engine.instances[instance]["status"] = "TERMINATED"

    def untag(self, instance: str) -> None:
        """By somebody who tidies up."""
        with self.engine.lock:
            del self.engine.instances[instance]["labels"]["tenax-cluster"]

    def leave(self, kind: PartKind, tags: Mapping[str, str], holder: str = "") -> str:
        """A part beside machines, made by somebody else; what it is called."""
        is_disk = kind is PartKind.DISK
        there, place = (self.engine.disks, ZONES[0]) if is_disk else (self.engine.addresses, REGION)
        zone, _, name = holder.partition("/")
        users = [f"https://www.googleapis.com/compute/v1/projects/{PROJECT}/zones/{zone}/instances/{name}"]
        with self.engine.lock:
            made = {"name": f"left-{len(there)}", "labels": dict(tags), "users": users if holder else []}
            its = {"sizeGb": "50", "status": "READY", "zone": place} if is_disk else {"address": "203.0.113.7"}
            there[f"{place}/{made['name']}"] = {**made, **its}
        return f"{place}/{made['name']}"

    def left(self, kind: PartKind) -> list[str]:
        """What there is of a kind."""
        return list(self.engine.disks if kind is PartKind.DISK else self.engine.addresses)

    def launch(self, tags: Mapping[str, str]) -> str:
        """By somebody else; its id."""
        name = f"{ZONES[0]}/by-hand-{len(self.engine.operations)}-{len(self.engine.instances)}"
        with self.engine.lock:
            self.engine.instances[name] = {
                "name": name.partition("/")[2], "labels": dict(tags), "status": "RUNNING",
                "machineType": f"projects/{PROJECT}/zones/{ZONES[0]}/machineTypes/e2-standard-2",
            }  # fmt: skip
        return name


@contextmanager
def google(directory: Path) -> Iterator[RentedAtGoogle]:
    """The double, with nothing rented."""
    with compute_engine(directory) as (engine, url, account):
        yield RentedAtGoogle(url, engine, account)
