"""Templates: partial configurations at the master, below what is submitted with their names."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field
from typing import List, Optional

from tenax.client.connection import reading
from tenax.client.connection.session import Query, Session, at
from tenax.client.trials import pages
from tenax.jsonvalue import JsonObject

_PATH = "/api/v1/templates"


@dataclass(frozen=True)
class Template:
    """A template, as the master returned it."""

    name: str
    workspace: str
    workspace_id: int
    owner: str
    changed: Optional[datetime.datetime]
    #: As written.
    config: JsonObject = field(repr=False)
    #: The whole answer.
    raw: JsonObject = field(repr=False, compare=False)

    @staticmethod
    def read(value: JsonObject) -> Template:
        """From an answer of the master."""
        return Template(
            name=reading.text(value, "name"),
            workspace=reading.text(value, "workspaceName"),
            workspace_id=reading.integer(value, "workspaceId"),
            owner=reading.text(value, "username"),
            changed=reading.moment(value, "modifiedAt"),
            config=reading.record(value, "config"),
            raw=value,
        )


def list_templates(session: Session, *, name: str = "", workspace_id: int = 0) -> List[Template]:
    """By name; ``name``: a part of it."""
    query: Query = {"name": name or None, "workspaceIds": [workspace_id] if workspace_id else None}
    return [Template.read(value) for value in pages(session, _PATH, "templates", query)]


def get_template(session: Session, name: str) -> Template:
    """Raises NotFound."""
    return _template(session.get(_at(name)))


def create_template(session: Session, name: str, config: JsonObject, *, workspace_id: int = 0) -> Template:
    """Raises AlreadyExists, InvalidInput with every problem of ``config``."""
    body: JsonObject = {"name": name, "config": config, "workspaceId": workspace_id}
    return _template(session.create(_at(name), body))


def set_template_config(session: Session, name: str, config: JsonObject) -> Template:
    """Replace its configuration. Raises NotFound, Forbidden, InvalidInput."""
    return _template(session.call("PATCH", _at(name), body=config))


def delete_template(session: Session, name: str) -> None:
    """Raises NotFound, Forbidden."""
    session.call("DELETE", _at(name))


def _at(name: str) -> str:
    return at("/api/v1/templates/{}", name)


def _template(answer: JsonObject) -> Template:
    return Template.read(reading.record(answer, "template"))
