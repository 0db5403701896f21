"""``integrations``: webhooks of one experiment, and data sets of Pachyderm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from tenax.config.schema.environment import PORT
from tenax.config.shapes import Flag, Int, ListOf, Text
from tenax.config.structs import Struct


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhooks:
    """Which webhooks hear of this experiment, beside those that hear of all."""

    webhook_id: Annotated[tuple[int, ...] | None, ListOf(Int(minimum=1))] = None
    webhook_name: Annotated[tuple[str, ...] | None, ListOf(Text(filled=True))] = None
    #: Keeps this experiment from all of them.
    exclude: Annotated[bool, Flag()] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Pachd:
    """Address of Pachyderm's service."""

    host: Annotated[str, Text(filled=True)]
    port: Annotated[int, PORT]


@dataclass(frozen=True, slots=True, kw_only=True)
class PachydermProxy:
    """Address of Pachyderm's proxy."""

    scheme: Annotated[str, Text(filled=True)]
    host: Annotated[str, Text(filled=True)]
    port: Annotated[int, PORT]


@dataclass(frozen=True, slots=True, kw_only=True)
class PachydermDataset:
    """A commit of a repository."""

    project: Annotated[str, Text(filled=True)]
    repo: Annotated[str, Text(filled=True)]
    commit: Annotated[str, Text(filled=True)]
    branch: Annotated[str, Text(filled=True)]
    token: Annotated[str, Text()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pachyderm:
    """Read by the training code."""

    pachd: Annotated[Pachd, Struct(Pachd)]
    proxy: Annotated[PachydermProxy, Struct(PachydermProxy)]
    dataset: Annotated[PachydermDataset, Struct(PachydermDataset)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Integrations:
    """Other services."""

    webhooks: Annotated[Webhooks | None, Struct(Webhooks)] = None
    pachyderm: Annotated[Pachyderm | None, Struct(Pachyderm)] = None


INTEGRATIONS = Struct(Integrations)
