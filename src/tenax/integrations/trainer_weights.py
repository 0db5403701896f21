"""Weights of a Trainer's checkpoint that the Trainer itself does not put back.

Transformers 5 saves many models (vision transformers, mixtures of experts) under the names that their published weights
have, which are not those in the model. Its Trainer, going on, matches names alone: what has another one stays as it was
made, random, with a line in the log (its issues 43701 and 48805). ``from_pretrained`` knows both.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Optional

import transformers

from tenax.errors import InvalidInput

_WEIGHTS = "model.safetensors"
_INDEX = "model.safetensors.index.json"


def restore_weights(model: object, folder: str) -> None:
    """Load a checkpoint's weights into ``model`` where their names are not all its own. Raises InvalidInput."""
    saved = _names_in(Path(folder))
    if not isinstance(model, transformers.PreTrainedModel) or saved is None or saved <= set(model.state_dict()):
        return
    loaded, about = type(model).from_pretrained(
        folder, config=model.config, dtype=model.dtype, output_loading_info=True, local_files_only=True
    )
    _require_whole(folder, about)
    model.load_state_dict(loaded.state_dict())


def _names_in(folder: Path) -> Optional[set[str]]:
    """Of the weights in a folder; None: they are in another form."""
    if (folder / _WEIGHTS).exists():
        from safetensors import safe_open

        with safe_open(str(folder / _WEIGHTS), framework="pt") as file:
            return set(file.keys())
    if (folder / _INDEX).exists():
        return set(json.loads((folder / _INDEX).read_text())["weight_map"])
    return None


def _require_whole(folder: str, about: dict[str, Any]) -> None:
    missing = sorted(about.get("missing_keys", ()))
    if missing:
        raise InvalidInput(
            f"{folder} does not hold all weights of this model: {', '.join(missing[:5])} would be random. Build the "
            "model as it was when the checkpoint was made, or begin anew"
        )
