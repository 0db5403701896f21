"""What the script of a rented machine does about the driver of its GPUs. No driver is real here."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenax.master.provision.bootstrap import bootstrap_script
from tests.kits.bootstrapped import NOTES, put, run
from tests.kits.rented_gcp import gcp_settings

_LOADED = '[ -e "$TENAX_MACHINE_DIR/loaded" ]\n'


def notes(place: Path) -> list[str]:
    """What programs were told, but for those that every machine runs."""
    lines = (place / "state" / "notes").read_text().splitlines()
    return [line for line in lines if not line.startswith(("shutdown", "tenax"))]


@pytest.mark.parametrize(
    ("programs", "told"),
    [
        ({"nvidia-smi": ""}, ["nvidia-smi -L"]),
        (
            {"nvidia-smi": _LOADED, "modprobe": 'touch "$TENAX_MACHINE_DIR/loaded"\n'},
            ["nvidia-smi -L", "modprobe nvidia", "nvidia-smi -L"],
        ),
        ({"modprobe": ""}, ["modprobe nvidia"]),
    ],
    ids=["works", "is not loaded yet", "comes without programs"],
)
def test_a_driver_is_used(tmp_path: Path, programs: dict[str, str], told: list[str]) -> None:
    """Whether or not something has loaded it."""
    for name, does in programs.items():
        put(tmp_path, name, NOTES + does)
    done = run(tmp_path, "shutdown", "tenax", cpu_slots_allowed=False)
    assert "tenax: use the GPUs: done" in done.stderr
    assert notes(tmp_path) == told


@pytest.mark.parametrize("modprobe", ["", "exit 1\n"], ids=["a GPU that is dead", "no driver"])
def test_without_a_driver_that_works_an_image_is_named(tmp_path: Path, modprobe: str) -> None:
    """And nothing is installed."""
    put(tmp_path, "nvidia-smi", NOTES + "exit 9\n")
    put(tmp_path, "modprobe", NOTES + modprobe)
    done = run(tmp_path, "shutdown", "tenax", cpu_slots_allowed=False)
    assert done.returncode == 1
    assert "tenax: use the GPUs: failed: no driver works with the GPUs: take an image that has one" in done.stderr
    assert "such as a Deep Learning Base GPU AMI with Ubuntu 24.04\n" in done.stderr


def test_each_provider_has_an_image_and_a_cpu_needs_none() -> None:
    """Of slots that are those of a CPU, or none, nobody looks for a driver."""
    gpus = {"machine_type": "n1-standard-8", "gpu_type": "nvidia-tesla-t4", "gpu_num": 1}
    at_google = gcp_settings(cpu_slots_allowed=None, cpu_slots=None, instance_type=gpus)
    assert "of ubuntu-os-accelerator-images" in bootstrap_script("m-1", "p", "t", at_google, None)
    assert "nvidia" not in bootstrap_script("m-1", "p", "t", gcp_settings(), None)
