"""``pod_spec``: a Kubernetes pod as the user writes it, merged as Kubernetes itself merges patches of pods."""

from __future__ import annotations

from tenax.config.problems import Path, ProblemReport
from tenax.config.shapes import FreeMap
from tenax.jsonvalue import Json, JsonObject

#: The container that runs the task: its image, command and arguments are ours.
TASK_CONTAINER = "determined-container"
#: What a pod spec may set on it.
_PERMITTED = frozenset(
    {
        *("name", "resources", "volumeMounts", "volumeDevices", "env", "envFrom", "securityContext", "ports"),
        *("lifecycle", "livenessProbe", "readinessProbe", "startupProbe", "imagePullPolicy"),
        *("terminationMessagePath", "terminationMessagePolicy"),
    }
)
#: How Kubernetes tells the items of a list apart when it patches; lists that are not here are replaced.
_KEYS = {
    "containers": "name",
    "initContainers": "name",
    "ephemeralContainers": "name",
    "volumes": "name",
    "imagePullSecrets": "name",
    "env": "name",
    "volumeMounts": "mountPath",
    "volumeDevices": "devicePath",
    "ports": "containerPort",
    "hostAliases": "ip",
    "topologySpreadConstraints": "topologyKey",
}


class PodSpec(FreeMap):
    """Any map, but for what belongs to us in the task's own container."""

    def check(self, value: Json, at: Path, report: ProblemReport) -> Json:
        checked = super().check(value, at, report)
        spec = checked.get("spec") if isinstance(checked, dict) else None
        containers = spec.get("containers") if isinstance(spec, dict) else None
        for index, container in enumerate(containers if isinstance(containers, list) else []):
            if isinstance(container, dict) and container.get("name") == TASK_CONTAINER:
                taken = sorted(set(container) - _PERMITTED)
                if taken:
                    where = (*at, "spec", "containers", index)
                    allowed = ", ".join(sorted(_PERMITTED - {"name"}))
                    report.add(where, f"{', '.join(taken)} of {TASK_CONTAINER} cannot be set; what can: {allowed}")
        return checked

    def merge(self, high: Json, low: Json) -> Json:
        if isinstance(high, dict) and isinstance(low, dict):
            return _merge_maps(high, low)
        return high


def _merge_maps(high: JsonObject, low: JsonObject) -> JsonObject:
    merged = dict(low)
    for name, above in high.items():
        below = low.get(name)
        if isinstance(above, dict) and isinstance(below, dict):
            merged[name] = _merge_maps(above, below)
        elif isinstance(above, list) and isinstance(below, list) and name in _KEYS:
            merged[name] = _merge_lists(above, below, _KEYS[name])
        elif above is not None:
            merged[name] = above
    return merged


def _merge_lists(high: list[Json], low: list[Json], key: str) -> list[Json]:
    """Items with the same key unite; the others stand one after the other, the lower layer's first."""
    merged: list[Json] = []
    places: dict[object, int] = {}
    for item in [*low, *high]:
        name = item.get(key) if isinstance(item, dict) else None
        named = isinstance(name, (str, int, float))
        place = places.get(name) if named and len(merged) >= len(low) else None
        below = merged[place] if place is not None else None
        if place is not None and isinstance(item, dict) and isinstance(below, dict):
            merged[place] = _merge_maps(item, below)
            continue
        if named:
            places.setdefault(name, len(merged))
        merged.append(item)
    return merged


POD_SPEC = PodSpec()
