"""``environment``: the image, the variables and the container settings of a trial.

Image and variables have one value per kind of device; the kind of the slots that a trial gets chooses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, make_dataclass
from typing import Annotated

from tenax.config.problems import Path, ProblemReport
from tenax.config.schema.pod_spec import POD_SPEC
from tenax.config.shapes import (
    Flag,
    IntShape,
    ListOf,
    MapOf,
    Respelled,
    Shape,
    TextShape,
    frozen,
    key,
    low_then_high,
    united_by,
)
from tenax.config.structs import Struct
from tenax.jsonvalue import Json, JsonObject
from tenax.scheduler.devices import DeviceKind

#: Of every kind that has none of its own.
IMAGE = "determinedai/pytorch-ngc-dev:0736b6d"
ROCM_IMAGE = "determinedai/environments:rocm-5.6-pytorch-1.3-tf-2.10-rocm-mpich-0736b6d"

_DEVICES = tuple(kind.value for kind in DeviceKind)
PORT = IntShape(minimum=0, maximum=65535)


def of_each(item: Shape, defaults: Mapping[DeviceKind, Json], default: Json = None) -> Struct[object]:
    """One value per kind of device, under the name of the kind."""
    fields = [
        (kind.value, Annotated[object, item], field(default=frozen(defaults.get(kind, default)))) for kind in DeviceKind
    ]
    return Struct(make_dataclass("OfEachDevice", fields, frozen=True, slots=True, kw_only=True))


def _has_name(value: Json, at: Path, report: ProblemReport) -> None:
    if not str(value).partition("=")[0].strip():
        report.add(at, f"{value!r} names no variable: write NAME=value")


VARIABLE = TextShape(filled=True, rule=_has_name)
_LIST = ListOf(VARIABLE, merge=low_then_high)


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


_IMAGES = of_each(TextShape(filled=True), {DeviceKind.ROCM: ROCM_IMAGE}, IMAGE)
#: ``NAME=value``, in the order in which they are set: a later one overrides.
_VARIABLES = of_each(_LIST, {}, [])
_OLDER: JsonObject = {"anyOf": [{"type": ["string", "array"]}, {"type": "object", "required": ["gpu"]}]}
IMAGES = Respelled(_IMAGES, per_device, older=_OLDER)
VARIABLES = Respelled(_VARIABLES, per_device, older=_OLDER)


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

    #: By kind of device, each as an attribute.
    image: Annotated[object, IMAGES] = field(default_factory=lambda: _IMAGES.build({}))
    environment_variables: Annotated[object, VARIABLES] = field(default_factory=lambda: _VARIABLES.build({}))
    force_pull_image: Annotated[bool, Flag()] = False
    registry_auth: Annotated[RegistryAuth | None, REGISTRY_AUTH] = None
    add_capabilities: Annotated[tuple[str, ...], ListOf(TextShape(filled=True))] = ()
    drop_capabilities: Annotated[tuple[str, ...], ListOf(TextShape(filled=True))] = ()
    ports: Annotated[dict[str, int], MapOf(PORT)] = field(default_factory=dict)
    proxy_ports: Annotated[tuple[ProxyPort, ...], PROXY_PORTS] = ()
    #: A Kubernetes pod, laid under the one that we make.
    pod_spec: Annotated[JsonObject | None, POD_SPEC] = None


ENVIRONMENT = Struct(Environment)
