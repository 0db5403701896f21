"""``integrations``: webhooks of one experiment, and data sets of Pachyderm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from tenax.config.schema.environment import PORT
from tenax.config.shapes import Flag, IntShape, ListOf, TextShape
from tenax.config.structs import Struct


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhooks:
    """Which webhooks hear of this experiment, beside those that hear of all."""

    webhook_id: Annotated[tuple[int, ...] | None, ListOf(IntShape(minimum=1))] = None
    webhook_name: Annotated[tuple[str, ...] | None, ListOf(TextShape(filled=True))] = None
    #: Keeps this experiment from all of them.
    exclude: Annotated[bool, Flag()] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Pachd:
    """Address of Pachyderm's service."""

    host: Annotated[str, TextShape(filled=True)]
    port: Annotated[int, PORT]


@dataclass(frozen=True, slots=True, kw_only=True)
class PachydermProxy:
    """Address of Pachyderm's proxy."""

    scheme: Annotated[str, TextShape(filled=True)]
    host: Annotated[str, TextShape(filled=True)]
    port: Annotated[int, PORT]


@dataclass(frozen=True, slots=True, kw_only=True)
class PachydermDataset:
    """A commit of a repository."""

    project: Annotated[str, TextShape(filled=True)]
    repo: Annotated[str, TextShape(filled=True)]
    commit: Annotated[str, TextShape(filled=True)]
    branch: Annotated[str, TextShape(filled=True)]
    token: Annotated[str, TextShape()]


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
