"""Projects."""

from __future__ import annotations

from typing import Any, Dict, List

from tenax.client import projects
from tenax.errors import NotFound
from tenax.experimental.experiment import Experiment
from tenax.experimental.resource import Resource


class Project(Resource[projects.Project]):
    """A folder of experiments."""

    def __repr__(self) -> str:
        return f"Project(id={self.id}, name={self.name})"

    @property
    def id(self) -> int:
        return self.now.id

    @property
    def name(self) -> str:
        return self.now.name

    @property
    def description(self) -> str:
        return self.now.description

    @property
    def key(self) -> str:
        return self.now.key

    @property
    def archived(self) -> bool:
        return self.now.archived

    @property
    def n_active_experiments(self) -> int:
        return self.now.active_count

    @property
    def n_experiments(self) -> int:
        return self.now.experiments_count

    @property
    def workspace_id(self) -> int:
        return self.now.workspace_id

    @property
    def username(self) -> str:
        return self.now.owner

    @property
    def notes(self) -> List[Dict[str, Any]]:
        """Each with ``name`` and ``contents``."""
        return [{"name": note.name, "contents": note.contents} for note in self.now.notes]

    def list_experiments(self) -> List[Experiment]:
        """What is filed in it."""
        return [Experiment(experiment) for experiment in self.now.experiments()]

    def set_name(self, name: str) -> None:
        """Give it another name."""
        self.now = self.now.edit(name=name)

    def set_description(self, description: str) -> None:
        """Describe it anew."""
        self.now = self.now.edit(description=description)

    def set_key(self, key: str) -> None:
        """What its runs are called by."""
        self.now = self.now.edit(key=key)

    def archive(self) -> None:
        """Nothing is filed in it any more."""
        self.now.archive()
        self.reload()

    def unarchive(self) -> None:
        """As it was before."""
        self.now.unarchive()
        self.reload()

    def add_note(self, name: str, contents: str) -> None:
        """Behind the others."""
        self.now.add_note(name, contents)
        self.reload()

    def remove_note(self, name: str) -> None:
        """All of that name. Raises NotFound."""
        self.reload()
        left = [note for note in self.now.notes if note.name != name]
        if len(left) == len(self.now.notes):
            raise NotFound(f"Project {self.name} has no note {name!r}.")
        self.now.set_notes(left)
        self.reload()
