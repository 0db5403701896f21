"""An experiment and its trials as a pretended master answers with them."""

from __future__ import annotations

from tests.kits.pretend_master import PretendMaster

SEARCHER = {"name": "adaptive_asha", "metric": "accuracy", "smaller_is_better": False}


def experiment(**more: object) -> dict[str, object]:
    value: dict[str, object] = {
        "id": 7,
        "name": "digits",
        "username": "ann",
        "state": "STATE_RUNNING",
        "progress": 0.256,
        "numTrials": 2,
        "startTime": "2026-01-02T03:04:05Z",
        "config": {"searcher": SEARCHER},
        "searcherType": "adaptive_asha",
    }
    return {**value, **more}


def trial(number: int, state: str = "RUNNING", best: float | None = None, **more: object) -> dict[str, object]:
    validation = {"totalBatches": 5, "metrics": {"avgMetrics": {"accuracy": best}}} if best is not None else None
    value: dict[str, object] = {
        "id": number,
        "experimentId": 7,
        "state": f"STATE_{state}",
        "hparams": {"lr": 0.01, "width": 64},
        "totalBatchesProcessed": 5,
        "bestValidation": validation,
        "latestValidation": validation,
        "summaryMetrics": {} if best is None else {"validation_metrics": {"accuracy": {"count": 1, "last": best}}},
        "startTime": "2026-01-02T03:04:05Z",
        "endTime": "2026-01-02T03:05:15Z",
    }
    return {**value, **more}


def serve(master: PretendMaster, one: dict[str, object], *trials: dict[str, object]) -> None:
    page = {"endIndex": len(trials), "total": len(trials)}
    master.on("GET", "/api/v1/experiments/7", {"experiment": one})
    master.on("GET", "/api/v1/experiments/7/trials", {"trials": list(trials), "pagination": page})
