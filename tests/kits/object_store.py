"""A storage that tasks reach as they reach object stores."""

from __future__ import annotations

from tenax.storage.directory import DirectoryStorage


class ObjectStore(DirectoryStorage):
    """A storage that can neither be written nor read in place, as object stores are."""

    def stage_directory(self, storage_id: str) -> str | None:
        return None

    def direct_path(self, storage_id: str) -> str | None:
        super().direct_path(storage_id)
        return None

    def list_files(self, storage_id: str) -> dict[str, int]:
        path = super().direct_path(storage_id)
        assert path is not None
        return DirectoryStorage(self.base, identity={}, label="x").list_files(storage_id)
