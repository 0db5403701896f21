"""The Grafana dashboard of a cluster: of its panels in words the document that Grafana imports. Pure."""

from __future__ import annotations

from typing import List

from tenax.cli.master.panels import COLUMNS, ROWS, DashboardPanel
from tenax.jsonvalue import Json, JsonObject

#: Of Grafana's model of dashboards; every Grafana from 9 on reads it.
_SCHEMA = 38


def dashboard() -> JsonObject:
    """The document; Grafana asks for the source of data when it is imported, and above the panels."""
    panels: List[JsonObject] = []
    top = 0
    for row in ROWS:
        place = _place(0, top, COLUMNS, 1)
        panels.append({"type": "row", "title": row.title, "gridPos": place, "collapsed": False, "panels": []})
        top += 1
        left = height = 0
        for panel in row.panels:
            if left + panel.width > COLUMNS:
                left, top = 0, top + height
            height = 4 if panel.kind == "stat" else 8
            panels.append(_panel(panel, _place(left, top, panel.width, height)))
            left += panel.width
        top += height
    for number, each in enumerate(panels, 1):
        each["id"] = number
    return {
        "uid": "tenax-cluster",
        "title": "Tenax cluster",
        "tags": ["tenax"],
        "schemaVersion": _SCHEMA,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [*_choices()]},
        "panels": [*panels],
    }


def _choices() -> List[JsonObject]:
    every: JsonObject = {"includeAll": True, "multi": True, "allValue": ".*", "refresh": 2, "sort": 1}
    every["current"] = {"text": "All", "value": "$__all"}
    return [
        {
            "name": "datasource",
            "type": "datasource",
            "query": "prometheus",
            "label": "Source",
            "current": {},
            "options": [],
            "regex": "",
            "hide": 0,
            "includeAll": False,
            "multi": False,
        },
        {**_variable("pool", "label_values(tenax_attempts, pool)"), "label": "Pool", **every},
        {**_variable("instance", "label_values(tenax_build_info, instance)"), "label": "Master", **every},
    ]


def _variable(name: str, query: str) -> JsonObject:
    return {"name": name, "type": "query", "datasource": _source(), "query": {"query": query, "refId": name}}


def _source() -> JsonObject:
    return {"type": "prometheus", "uid": "${datasource}"}


def _place(x: int, y: int, width: int, height: int) -> JsonObject:
    return {"x": x, "y": y, "w": width, "h": height}


def _panel(panel: DashboardPanel, place: JsonObject) -> JsonObject:
    targets: List[Json] = []
    for letter, query in zip("ABCDEF", panel.queries):
        legend = query.legend or "__auto"
        target: JsonObject = {"refId": letter, "datasource": _source(), "expr": query.expr, "legendFormat": legend}
        if panel.kind != "timeseries":
            target["instant"] = True
        if panel.kind == "table":
            target["format"] = "table"
        targets.append(target)
    document: JsonObject = {
        "type": panel.kind,
        "title": panel.title,
        "description": panel.help,
        "datasource": _source(),
        "gridPos": place,
        "fieldConfig": {"defaults": _look(panel), "overrides": []},
        "options": {},
        "targets": targets,
    }
    if panel.kind == "timeseries":
        document["options"] = {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}}
    if panel.kind == "stat":
        document["options"] = {"reduceOptions": {"calcs": ["lastNotNull"]}, "colorMode": "value", "graphMode": "area"}
    if panel.kind == "table":
        hidden: JsonObject = {"Time": True, "Value": True}
        document["transformations"] = [{"id": "organize", "options": {"excludeByName": hidden}}]
    return document


def _look(panel: DashboardPanel) -> JsonObject:
    """Unit and colours. Without thresholds of ours Grafana's begin at 80."""
    look: JsonObject = {"unit": panel.unit, "min": 0}
    if panel.kind == "stat":
        steps: List[Json] = [{"color": "green" if panel.is_bad else "text", "value": None}]
        if panel.is_bad:
            steps.append({"color": "red", "value": 1})
        look["color"] = {"mode": "thresholds"}
        look["thresholds"] = {"mode": "absolute", "steps": steps}
    return look
