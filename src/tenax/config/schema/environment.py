"""``environment``: the image, the variables and the container settings of a trial.

Image and variables have one value per kind of device; the kind of the slots that a trial gets chooses.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from tenax.config.problems import Path, ProblemReport
from tenax.config.schema.pod_spec import POD_SPEC
from tenax.config.shapes import Flag, IntShape, ListOf, MapOf, Respelled, TextShape, key, low_then_high, united_by
from tenax.config.structs import Struct
from tenax.jsonvalue import Json, JsonObject
from tenax.resources import DeviceKind

CPU_IMAGE = "determinedai/pytorch-ngc-dev:0736b6d"
CUDA_IMAGE = "determinedai/pytorch-ngc-dev:0736b6d"
ROCM_IMAGE = "determinedai/environments:rocm-5.6-pytorch-1.3-tf-2.10-rocm-mpich-0736b6d"

_DEVICES = tuple(kind.value for kind in DeviceKind)
PORT = IntShape(minimum=0, maximum=65535)


@dataclass(frozen=True, slots=True, kw_only=True)
class Images:
    """The image for each kind of device."""

    cpu: Annotated[str, TextShape(filled=True)] = CPU_IMAGE
    cuda: Annotated[str, TextShape(filled=True)] = CUDA_IMAGE
    rocm: Annotated[str, TextShape(filled=True)] = ROCM_IMAGE

    def of(self, kind: DeviceKind) -> str:
        """The image for slots of that kind."""
        return str(getattr(self, kind.value))


def _has_name(value: Json, at: Path, report: ProblemReport) -> None:
    if not str(value).partition("=")[0].strip():
        report.add(at, f"{value!r} names no variable: write NAME=value")


VARIABLE = TextShape(filled=True, rule=_has_name)
_LIST = ListOf(VARIABLE, merge=low_then_high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Variables:
    """``NAME=value`` for each kind of device, in the order in which they are set: a later one overrides."""

    cpu: Annotated[tuple[str, ...], _LIST] = ()
    cuda: Annotated[tuple[str, ...], _LIST] = ()
    rocm: Annotated[tuple[str, ...], _LIST] = ()

    def of(self, kind: DeviceKind) -> dict[str, str]:
        """Names and values for slots of that kind; a name without ``=`` is set to the empty string."""
        chosen: tuple[str, ...] = getattr(self, kind.value)
        return {name: value for name, _, value in (text.partition("=") for text in chosen)}


def per_device(value: Json, at: Path, report: ProblemReport) -> Json:
    """One value for all kinds of devices as one for each; ``gpu`` as ``cuda``."""
    if isinstance(value, (str, list)):
        return dict.fromkeys(_DEVICES, value)
    if isinstance(value, dict) and value.get("gpu") is not None:
        report.note((*at, "gpu"), "is called cuda now, and was taken as such")
        renamed: JsonObject = {name: item for name, item in value.items() if name != "gpu"}
        if renamed.get("cuda") is None:
            renamed["cuda"] = value["gpu"]
        return renamed
    if isinstance(value, dict):
        return {name: item for name, item in value.items() if name != "gpu"}
    return value


IMAGES = Respelled(Struct(Images), per_device)
VARIABLES = Respelled(Struct(Variables), per_device)


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryAuth:
    """How to log in to the registry that holds the image."""

    username: Annotated[str | None, TextShape()] = None
    password: Annotated[str | None, TextShape()] = field(default=None, repr=False)
    auth: Annotated[str | None, TextShape()] = field(default=None, repr=False)
    email: Annotated[str | None, TextShape()] = None
    serveraddress: Annotated[str | None, TextShape()] = None
    identitytoken: Annotated[str | None, TextShape()] = field(default=None, repr=False)
    registrytoken: Annotated[str | None, TextShape()] = field(default=None, repr=False)


#: Replaced whole: one account's name with another's password would be a login that nobody wrote.
REGISTRY_AUTH = Struct(RegistryAuth, atomic=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyPort:
    """A port of the task that the master's proxy serves."""

    proxy_port: Annotated[int, PORT]
    proxy_tcp: Annotated[bool, Flag()] = False
    unauthenticated: Annotated[bool, Flag()] = False
    default_service_id: Annotated[bool, Flag()] = False


PROXY_PORTS = ListOf(Struct(ProxyPort, atomic=True), merge=united_by(key("proxy_port")))


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """The surroundings of a trial's processes."""

    image: Annotated[Images, IMAGES] = Images()
    environment_variables: Annotated[Variables, VARIABLES] = Variables()
    force_pull_image: Annotated[bool, Flag()] = False
    registry_auth: Annotated[RegistryAuth | None, REGISTRY_AUTH] = None
    add_capabilities: Annotated[tuple[str, ...], ListOf(TextShape(filled=True))] = ()
    drop_capabilities: Annotated[tuple[str, ...], ListOf(TextShape(filled=True))] = ()
    ports: Annotated[dict[str, int], MapOf(PORT)] = field(default_factory=dict)
    proxy_ports: Annotated[tuple[ProxyPort, ...], PROXY_PORTS] = ()
    #: A Kubernetes pod, laid under the one that we make.
    pod_spec: Annotated[JsonObject | None, POD_SPEC] = None


ENVIRONMENT = Struct(Environment)
