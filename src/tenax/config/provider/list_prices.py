"""What machines with GPUs cost per hour by their providers' public price lists, on the day that stands beside them.

Rules: on demand, Linux, in US dollars, without disks, traffic and discounts. A price that nobody knows is not there:
the table is for where neither the operator has written one nor the provider says one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

#: The day on which the lists were so. AWS lowered its prices of P4 and P5 four days before.
LISTED_ON = date(2025, 6, 5)
AWS_PAGE = "https://aws.amazon.com/ec2/pricing/on-demand/"
GCP_PAGE = "https://cloud.google.com/compute/vm-instance-pricing"
GCP_GPU_PAGE = "https://cloud.google.com/compute/gpus-pricing"


@dataclass(frozen=True, slots=True)
class ListPrice:
    """Of one machine per hour."""

    amount: float
    page: str
    day: date = LISTED_ON


#: The same in both regions.
_AWS_REGIONS = frozenset({"us-east-1", "us-west-2"})
_AWS: Mapping[str, float] = {
    "g4dn.xlarge": 0.526, "g4dn.2xlarge": 0.752, "g4dn.4xlarge": 1.204, "g4dn.8xlarge": 2.176,
    "g4dn.12xlarge": 3.912, "g4dn.16xlarge": 4.352, "g4dn.metal": 7.824,
    "g5.xlarge": 1.006, "g5.2xlarge": 1.212, "g5.4xlarge": 1.624, "g5.8xlarge": 2.448,
    "g5.12xlarge": 5.672, "g5.16xlarge": 4.096, "g5.24xlarge": 8.144, "g5.48xlarge": 16.288,
    "g6.xlarge": 0.8048, "g6.2xlarge": 0.9776, "g6.4xlarge": 1.3232, "g6.8xlarge": 2.0144,
    "g6.12xlarge": 4.6016, "g6.16xlarge": 3.3968, "g6.24xlarge": 6.6752, "g6.48xlarge": 13.3504,
    "p3.2xlarge": 3.06, "p3.8xlarge": 12.24, "p3.16xlarge": 24.48,
    "p4d.24xlarge": 21.957642, "p5.48xlarge": 55.04,
}  # fmt: skip
_GCP_REGION = "us-central1"
#: Machines that come with their GPUs.
_GCP: Mapping[str, float] = {
    "a2-highgpu-1g": 3.673385, "a2-highgpu-2g": 7.34677, "a2-highgpu-4g": 14.69354, "a2-highgpu-8g": 29.38708,
    "a2-megagpu-16g": 55.739504, "a3-highgpu-8g": 88.49,
    "g2-standard-4": 0.70683, "g2-standard-8": 0.85362, "g2-standard-12": 1.00042, "g2-standard-16": 1.14721,
    "g2-standard-24": 2.00083, "g2-standard-32": 1.73438, "g2-standard-48": 4.00167, "g2-standard-96": 8.00333,
}  # fmt: skip
#: Machines without GPUs, and the GPUs that are added to them.
_GCP_BARE: Mapping[str, float] = {
    "n1-standard-4": 0.189999, "n1-standard-8": 0.379998, "n1-standard-16": 0.759996, "n1-standard-32": 1.519992,
    "n1-standard-64": 3.039984, "n1-standard-96": 4.559976,
}  # fmt: skip
_GCP_GPUS: Mapping[str, float] = {"nvidia-tesla-t4": 0.35, "nvidia-tesla-v100": 2.48, "nvidia-tesla-p100": 1.46}

#: How Google's catalogue of prices calls the processors and the memory of a family of machine types, and GPUs.
GCP_FAMILIES: Mapping[str, str] = {
    "n1": "N1 Predefined Instance", "n2": "N2 Instance", "n2d": "N2D AMD Instance", "e2": "E2 Instance",
    "c2": "Compute optimized", "t2d": "T2D AMD Instance", "a2": "A2 Instance", "g2": "G2 Instance",
}  # fmt: skip
GCP_GPUS: Mapping[str, str] = {
    "nvidia-tesla-t4": "Nvidia Tesla T4 GPU", "nvidia-tesla-v100": "Nvidia Tesla V100 GPU",
    "nvidia-tesla-p100": "Nvidia Tesla P100 GPU", "nvidia-tesla-p4": "Nvidia Tesla P4 GPU",
    "nvidia-tesla-a100": "Nvidia Tesla A100 GPU", "nvidia-a100-80gb": "Nvidia Tesla A100 80GB GPU",
    "nvidia-l4": "Nvidia L4 GPU",
}  # fmt: skip


def aws_list_price(region: str, instance_type: str) -> ListPrice | None:
    """On demand; None: it is not in the table."""
    amount = _AWS.get(instance_type) if region in _AWS_REGIONS else None
    return None if amount is None else ListPrice(amount, AWS_PAGE)


def gcp_list_price(region: str, machine_type: str, gpu_type: str, gpu_num: int) -> ListPrice | None:
    """On demand, of a region without its project; None: it is not in the table."""
    if region != _GCP_REGION:
        return None
    if machine_type in _GCP:
        return ListPrice(_GCP[machine_type], GCP_PAGE)
    machine, gpu = _GCP_BARE.get(machine_type), _GCP_GPUS.get(gpu_type)
    if machine is None or gpu is None:
        return None
    return ListPrice(round(machine + gpu_num * gpu, 6), GCP_GPU_PAGE)
