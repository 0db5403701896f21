"""What Compute Engine lists of a project, by scopes; and what it has beside instances: disks, addresses, operations.

Rules: whoever took a scope that cannot be asked for an empty one would forget what is there. An operation carries no
mark: it is of the machine whose name its target has, and whose row tells that it is this cluster's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from tenax.errors import TenaxError
from tenax.jsonvalue import JsonObject, as_list, as_object
from tenax.master.provision.port import MACHINE, MachinePart, PartKind, PartsAnswer, ProviderAway, shown

_UNDER_WAY = "status!=DONE"
_NAMED = re.compile(r"/zones/([^/]+)/instances/(?:.*?)(m-[0-9a-f]{20})$")


def of_zones(page: JsonObject, key: str, region: str) -> Iterator[tuple[str, JsonObject]]:
    """What a page lists under ``key`` in a region and its zones, each with the name of where it is.

    Raises ProviderAway: one of them was not asked.
    """
    for scope, of_scope in as_object(page.get("items")).items():
        name = scope.rpartition("/")[2]
        if region not in (name, name.rpartition("-")[0]):
            continue
        warning = as_object(as_object(of_scope).get("warning"))
        if warning.get("code", "NO_RESULTS_ON_PAGE") != "NO_RESULTS_ON_PAGE":
            raise ProviderAway(f"{name} does not answer ({warning['code']}: {warning.get('message', '')})")
        for each in as_list(as_object(of_scope).get(key)):
            yield name, as_object(each)


def parts_of(marked: str, region: str, pages: Callable[[str, str], Iterable[JsonObject]]) -> PartsAnswer:
    """All parts in a region; ``marked``: the filter of the cluster's mark; ``pages``: of a list, by a filter."""
    parts: list[MachinePart] = []
    unknown: list[str] = []
    for kind, path, key, chosen in (
        (PartKind.DISK, "/aggregated/disks", "disks", marked),
        (PartKind.ADDRESS, "/aggregated/addresses", "addresses", marked),
        (PartKind.OPERATION, "/aggregated/operations", "operations", _UNDER_WAY),
    ):
        try:
            listed = [it for page in pages(path, chosen) for it in of_zones(page, key, region)]
        except TenaxError as error:
            unknown.append(f"no {kind.value.lower()} was looked at: {shown(error.message)}")
            continue
        parts += [part for zone, each in listed if (part := _part(kind, zone, each)) is not None]
    return PartsAnswer(tuple(parts), tuple(unknown))


def removal_path(part: MachinePart) -> str:
    """What is deleted, below the project."""
    zone, _, name = part.provider_id.partition("/")
    return f"/zones/{zone}/disks/{name}"


def _part(kind: PartKind, zone: str, each: JsonObject) -> MachinePart | None:
    if kind is PartKind.OPERATION:
        target = _NAMED.search(str(each.get("targetLink", "")))
        if target is None:
            return None
        holder = f"{target[1]}/{str(each['targetLink']).rpartition('/')[2]}"
        return MachinePart(kind, f"{zone}/{each['name']}", target[2], zone, holder, str(each.get("operationType", "")))
    mark = str(as_object(each.get("labels")).get(MACHINE, ""))
    used_by = [str(it) for it in as_list(each.get("users"))]
    holder = "/".join(used_by[0].split("/")[-3::2]) if used_by else ""
    name = f"{zone}/{each['name']}"
    if kind is PartKind.ADDRESS:
        return MachinePart(kind, name, mark, zone, holder, str(each.get("address", "")))
    # Of a machine is none that is of a region.
    is_idle = each.get("status") == "READY" and not holder and "zone" in each
    return MachinePart(kind, name, mark, zone, holder, f"{each.get('sizeGb')} GB", is_idle)
