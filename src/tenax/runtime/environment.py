"""The environment of a task in the process runtime. Pure.

Order, later wins: what the machine needs (a short list taken from the agent), the platform's defaults, the
specification, the agent's placement, and last what a task must not change: its own directories and its devices.
Nothing else of the agent's environment reaches a task. ``/run/determined`` at the start of a value or an argument, or
of one of several paths in it, stands for the run directory.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tenax.runtime.gpus import registry as gpus
from tenax.runtime.port import Placement
from tenax.wire.agents import ContainerSpec
from tenax.wire.task_names import RUN_DIRECTORY, SEGMENTS, SPOOL_FORMATS

#: Names taken over from the agent: where programs, drivers and caches of this machine are, and how to reach out of it.
_KEPT = frozenset(
    (
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "LANG",
        "LANGUAGE",
        "TZ",
        "LD_LIBRARY_PATH",
        "LIBRARY_PATH",
        "CUDA_HOME",
        "CUDA_PATH",
        "CUDA_DEVICE_ORDER",
        "ROCM_PATH",
        "ROCM_HOME",
        "HIP_PATH",
        "HSA_OVERRIDE_GFX_VERSION",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "REQUESTS_CA_BUNDLE",
        "HF_HOME",
        "HF_HUB_OFFLINE",
        "TORCH_HOME",
        "XDG_CACHE_HOME",
        "GLOO_SOCKET_IFNAME",
    )
)
_KEPT_PROXIES = frozenset(("HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "NO_PROXY", "ALL_PROXY"))
_KEPT_PREFIXES = ("LC_", "NCCL_")


def in_run_directory(text: str, run: Path) -> str:
    """``/run/determined/x`` as ``<run>/x``, also as one of several paths between colons; anything else unchanged."""
    if RUN_DIRECTORY not in text:
        return text
    return ":".join(
        str(run) + part[len(RUN_DIRECTORY) :] if part == RUN_DIRECTORY or part.startswith(RUN_DIRECTORY + "/") else part
        for part in text.split(":")
    )


def kept(agents: Mapping[str, str]) -> dict[str, str]:
    """What a task takes over from the agent's own environment."""
    return {
        name: value
        for name, value in agents.items()
        if name in _KEPT or name.upper() in _KEPT_PROXIES or name.startswith(_KEPT_PREFIXES)
    }


def task_environment(
    spec: ContainerSpec,
    placement: Placement,
    *,
    agents: Mapping[str, str],
    run: Path,
    workdir: Path,
    temporary: Path,
    python: Path,
    library: Path | None,
) -> dict[str, str]:
    """All variables of the task.

    ``library`` is the folder to put on PYTHONPATH where the interpreter does not have tenax itself.
    """
    given = {name: in_run_directory(value, run) for name, value in {**spec.env, **placement.env}.items()}
    values = {
        **kept(agents),
        # A pipe would hold back what the script prints until 8 KiB are full.
        "PYTHONUNBUFFERED": "1",
        **given,
    }
    values["PATH"] = f"{python.parent}:{values.get('PATH') or '/usr/local/bin:/usr/bin:/bin'}"
    if library is not None:
        values["PYTHONPATH"] = ":".join(filter(None, (values.get("PYTHONPATH"), str(library))))
    return {
        **values,
        **gpus.variables(placement.device_kind, placement.device_uuids),
        "DET_CONTAINER_ID": spec.container_id,
        "DET_RUN_DIR": str(run),
        SPOOL_FORMATS: SEGMENTS,
        "DET_WORKDIR": str(workdir),
        "DET_PYTHON_EXECUTABLE": str(python),
        "TMPDIR": str(temporary),
    }
