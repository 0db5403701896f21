"""A trial with a million reports: taken in, and drawn."""

from __future__ import annotations

import json
import time

import pytest

from tests.scale.place import TIMES, Large, asked, scaled, spool_lines, tell, timed

_BATCH = 10_000
_CHART_MS = 200.0


@pytest.mark.timeout(900)
async def test_a_trial_with_a_million_reports(large: Large) -> None:
    """Each report is there once, and its chart has its least and greatest value."""
    reports = scaled(1_000_000, 1000)
    sender = large.sender
    async with large.session() as http:
        began = time.perf_counter()
        for first in range(1, reports + 1, _BATCH):
            body = spool_lines(first, min(_BATCH, reports + 1 - first))
            async with http.post(
                f"/api/v1/allocations/{sender.allocation_id}/spool",
                params={"container_id": sender.container_id, "stream": "scale-1-1"},
                headers={"Authorization": f"Bearer {sender.token}"},
                data=body,
            ) as reply:
                assert reply.status == 200, await reply.text()
        tell("reports taken in", [(time.perf_counter() - began) * 1e3], reports=reports)
        query = {"metric": "loss", "group": "training", "max_points": "1000"}
        path = f"/api/v1/trials/{sender.trial_id}/series"
        chart = json.loads(await asked(http, path, **query))
        assert chart["total"] == reports
        assert (chart["steps"][0], chart["steps"][-1]) == (1, reports)
        assert max(chart["values"]) == pytest.approx(1.0)
        assert min(chart["values"]) == pytest.approx(1.0 / reports)
        taken = await timed(lambda: asked(http, path, **query), TIMES)
        tell("chart of a trial", taken, _CHART_MS, reports=reports)
        compared = {"trialIds": str(sender.trial_id), "metricNames": "loss", "maxDatapoints": "1000",
                    "metricType": "METRIC_TYPE_TRAINING"}  # fmt: skip
        answer = json.loads(await asked(http, "/api/v1/trials/time-series", **compared))
        points = answer["trials"][0]["metrics"][0]["data"]
        assert 2 <= len(points) <= 1100
        taken = await timed(lambda: asked(http, "/api/v1/trials/time-series", **compared), TIMES)
        tell("chart as Determined's page asks for it", taken, _CHART_MS, reports=reports)
