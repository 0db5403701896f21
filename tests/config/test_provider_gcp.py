"""What may be said of machines of Google Cloud, and what is refused, in words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tenax.config.master import load_master_settings
from tenax.config.problems import ConfigError
from tenax.config.provider import NOT_YET
from tenax.config.provider.gcp import GcpSettings
from tenax.config.settings import in_clear

T4: Mapping[str, Any] = {"machine_type": "n1-standard-32", "gpu_type": "nvidia-tesla-t4", "gpu_num": 4}
#: Not in the catalogue of prices as it is known here.
A3: Mapping[str, Any] = {"machine_type": "a3-highgpu-8g", "gpu_num": 8}
USUAL: Mapping[str, object] = {
    "type": "gcp",
    "master_url": "https://master.example.org",
    "project": "my-project",
    "zone": "us-central1-a",
    "boot_disk_source_image": "projects/my-project/global/images/tenax",
    "instance_type": T4,
}


def read(tmp_path: Path, **changes: object) -> GcpSettings:
    """The settings of a pool as its file has them; None takes one away."""
    given = {name: value for name, value in {**USUAL, **changes}.items() if value is not None}
    file = tmp_path / "master.yaml"
    file.write_text(json.dumps({"pools": [{"name": "default", "provider": given}]}))
    provider = load_master_settings(file, environ={}).pools[0].provider
    assert isinstance(provider, GcpSettings)
    return provider


def test_determineds_names_and_defaults(tmp_path: Path) -> None:
    """What another master reads of them is the same."""
    provider = read(tmp_path, operation_timeout_period="90s", labels={"team": "vision"}, base_config={"a": {"b": [1]}})
    assert (provider.boot_disk_size, provider.boot_disk_type) == (200, "pd-standard")
    assert (provider.label_key, provider.network_interface.external_ip) == ("managed-by", False)
    assert (provider.operation_timeout_period, provider.max_idle_agent_period) == (90.0, 1200.0)
    assert provider.service_account.scopes == ("https://www.googleapis.com/auth/cloud-platform",)
    assert read(tmp_path, **in_clear(provider)) == provider


def test_what_is_rented_in_words(tmp_path: Path) -> None:
    """As people read it of what waits; and how many slots it has."""
    provider = read(tmp_path, instance_type={**T4, "preemptible": True})
    assert provider.type_name == "n1-standard-32 with 4 nvidia-tesla-t4 (spot)"
    assert (provider.region, provider.instance_slots) == ("my-project/us-central1", 4)
    cpu = read(
        tmp_path, cpu_slots_allowed=True, cpu_slots=2, instance_type={"machine_type": "e2-standard-2", "gpu_num": 0}
    )
    assert (cpu.type_name, cpu.instance_slots) == ("e2-standard-2", 2)


@pytest.mark.parametrize("name", sorted(NOT_YET))
def test_what_is_not_there_yet_is_refused(tmp_path: Path, name: str) -> None:
    """With what to do instead; nothing of Determined's is ignored."""
    with pytest.raises(ConfigError, match=rf"provider\.{name} \(line 1\): has no effect yet: .*; leave it out"):
        read(tmp_path, **{name: "something"})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"project": None}, "provider.project (line 1): field required"),
        ({"offers": []}, "provider.offers (line 1): cannot be written for gcp: machines of a pool are of one type"),
        ({"choose": "first"}, "provider.choose (line 1): cannot be written for gcp: all zones cost the same"),
        ({"spot": True}, "provider.spot (line 1): cannot be written for gcp: write instance_type.preemptible"),
        ({"spot_max_price": 1}, "provider.spot_max_price (line 1): cannot be written for gcp"),
        ({"max_price": 1, "instance_type": {**A3, "preemptible": True}}, "has no price, which max_price needs"),
        (
            {"max_cost_per_hour": 1, "zone": "us-east1-c", "instance_type": A3},
            "which max_cost_per_hour needs: write price",
        ),
        ({"zon": "x"}, "provider.zon (line 1): unknown key 'zon'; did you mean 'zone'?"),
        ({"instance_type": {**T4, "gpus": 1}}, "provider.instance_type.gpus (line 1): unknown key"),
        ({"instance_type": "g5.12xlarge"}, "provider.instance_type"),
        ({"zone": None}, "write either zone or zones"),
        ({"zones": ["us-central1-b"]}, "write either zone or zones"),
        ({"zone": None, "zones": ["us-central1-a", "us-east1-b"]}, "different ones of one region"),
        ({"zone": "us-central1"}, "provider.zone"),
        ({"labels": {"Team": "x"}}, "labels cannot be Team"),
        ({"labels": {"team": "Vision"}}, "labels cannot be team"),
        ({"labels": {"tenax-pool": "x"}}, "labels cannot be tenax-pool"),
        ({"label_key": "tenax-cluster"}, "label_key cannot be tenax-cluster"),
        ({"name_prefix": "Tenax"}, "provider.name_prefix"),
        ({"name_prefix": "a" * 31}, "provider.name_prefix"),
        ({"network_tags": ["SSH"]}, "provider.network_tags"),
        ({"boot_disk_size": 8}, "provider.boot_disk_size"),
        ({"master_url": "http://internal-ip:8080"}, "write the master's address itself"),
        ({"master_url": "http://127.0.0.1:8080"}, "which is the machine itself for every machine"),
        ({"cpu_slots_allowed": True}, "cpu_slots_allowed is for machines without GPUs"),
        ({"instance_type": {**T4, "gpu_num": 0}}, "gpu_num is 0 and gpu_type is not empty"),
        ({"operation_timeout_period": "0s"}, "operation_timeout_period must be between"),
        ({"max_run": "10s", "max_agent_starting_period": "1s"}, "max_run must be 30s at least"),
        (
            {"max_run": "1h", "base_config": {"scheduling": {"maxRunDuration": {"seconds": "9"}}}},
            "max_run and base_config.scheduling.maxRunDuration say the same",
        ),
        ({"base_config": {"machineType": "x"}}, "machineType cannot stand in base_config: write instance_type"),
        ({"base_config": {"scheduling": {"preemptible": True}}}, "write instance_type.preemptible"),
        ({"base_config": {"metadata": {"items": [{"key": "startup-script"}]}}}, "write startup_script"),
        ({"base_config": {"metadata": {"items": ["x"]}}}, "is a list of {key, value}"),
    ],
)
def test_what_cannot_work_is_refused_at_the_start(tmp_path: Path, changes: Mapping[str, object], words: str) -> None:
    """Before anything is rented, at the place where it was written."""
    with pytest.raises(ConfigError) as refused:
        read(tmp_path, **changes)
    assert words in str(refused.value)
