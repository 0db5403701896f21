"""Deletes files of checkpoints where an agent reaches them: ``python -m tenax.exec.gc``. Standard library, Python 3.9.

What is to go stands in ``$DET_RUN_DIR/removals.json``: ``{"storage": {...}, "removals": [{"uuid", "globs"}],
"tensorboards": [path below the storage]}``. The outcome of each removal is reported to the master as it is done.
The exit code is 0 if all of it worked.
"""

from __future__ import annotations

import os
import sys

from tenax.client.connection import fast_json
from tenax.client.task import TaskClient
from tenax.errors import InvalidInput, TenaxError
from tenax.exec.launch import replace_process
from tenax.storage.port import EVERYTHING, is_there
from tenax.storage.registry import from_config, kind_of
from tenax.wire.task_names import REMOVALS_FILE, RUN_DIRECTORY, masters_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from tenax.jsonvalue import Json, JsonObject
    from tenax.storage.port import Storage

    Tell = Callable[[list[Json]], None]

#: Removals in one report.
_TOGETHER = 50
#: Seconds for which a master that is away is waited for.
_RETRY_FOR_S = 600.0


def main() -> int:
    run_dir = os.environ.get("DET_RUN_DIR") or RUN_DIRECTORY
    try:
        with open(os.path.join(run_dir, REMOVALS_FILE), encoding="utf-8") as file:
            document = fast_json.loads(file.read())
        if not isinstance(document, dict):
            raise InvalidInput(f"{REMOVALS_FILE} is no object")
        place = document.get("storage")
        kind = kind_of(place) if isinstance(place, dict) else None
        if sys.flags.no_site and kind is not None and not kind.standard_library_only:
            # Forked from a program of the agent's: site packages are not there.
            replace_process([sys.executable, "-m", "tenax.exec.gc"], os.environ)
        client = TaskClient(
            masters_of(os.environ),
            os.environ["DET_SESSION_TOKEN"],
            cert_file=os.environ.get("DET_MASTER_CERT_FILE", ""),
            cert_name=os.environ.get("DET_MASTER_CERT_NAME", ""),
        )

        def tell(reports: list[Json]) -> None:
            client.call("POST", "/api/v1/checkpoints/removals", body={"removals": reports}, retry_for_s=_RETRY_FOR_S)

        return carry_out(document, tell)
    except (TenaxError, OSError, ValueError, KeyError) as error:
        print(f"tenax: the checkpoints cannot be deleted: {error}", file=sys.stderr)
        return 1


def carry_out(document: JsonObject, tell: Tell) -> int:
    """Delete what ``document`` names; the exit code. Raises InvalidInput, UserError (the master does not take it)."""
    place, removals = document.get("storage"), document.get("removals")
    if not isinstance(place, dict) or not isinstance(removals, list):
        raise InvalidInput(f"{REMOVALS_FILE} must hold storage and removals")
    storage = from_config(place)
    # First: when the last checkpoint is reported, the experiment that they belong to may be forgotten.
    failures = _remove_tensorboards(storage, document.get("tensorboards"))
    reports: list[Json] = []
    for removal in removals:
        if not isinstance(removal, dict):
            raise InvalidInput("removals must be objects")
        report = _removed(storage, str(removal.get("uuid")), removal.get("globs"))
        failures += "failure" in report
        reports.append(report)
        if len(reports) == _TOGETHER:
            tell(reports)
            reports = []
    if reports:
        tell(reports)
    return 1 if failures else 0


def _remove_tensorboards(storage: Storage, paths: Json) -> int:
    """Delete what TensorBoard wrote, where nothing on the way is a link; how many could not be."""
    failures = 0
    for path in paths if isinstance(paths, list) else []:
        try:
            if storage.delete_beside(str(path)):
                print(f"TensorBoard files {path}: deleted")
        except (TenaxError, OSError) as error:
            print(f"TensorBoard files {path} could not be deleted: {error}", file=sys.stderr)
            failures += 1
    return failures


def _removed(storage: Storage, uuid: str, globs: Json) -> JsonObject:
    """Delete files of one checkpoint; what to tell of it."""
    patterns = [str(glob) for glob in globs] if isinstance(globs, list) else list(EVERYTHING)
    try:
        is_there(storage, uuid)
        left = storage.delete(uuid, patterns)
        if not left:
            storage.abandon(uuid)
    except (TenaxError, OSError) as error:
        print(f"checkpoint {uuid} could not be deleted: {error}", file=sys.stderr)
        return {"uuid": uuid, "failure": str(error)}
    print(f"checkpoint {uuid}: {len(left)} files left")
    return {"uuid": uuid, "resources": dict(left)}


if __name__ == "__main__":
    sys.exit(main())
