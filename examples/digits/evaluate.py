"""Load a checkpoint of the digits example again and print its accuracy on the held-out pictures.

    python evaluate.py DIRECTORY

DIRECTORY is the checkpoint itself: `tenax checkpoint download ID` makes one, and with a shared file system as
checkpoint storage it is `<host_path>/<id>`. Ends with code 1 if the figure is not the one that was reported when it was
saved.
"""

from __future__ import annotations

import json
import pathlib
import sys

import torch
from model import build, evaluate, load


def main(directory: pathlib.Path) -> int:
    if not (directory / "state.pt").is_file():
        sys.exit(f"{directory} is no checkpoint of train.py: there is no state.pt in it")
    metadata = json.loads((directory / "metadata.json").read_text())
    state = torch.load(directory / "state.pt")
    model = build(metadata["hparams"]["hidden"], metadata["hparams"]["dropout"])
    model.load_state_dict(state["model"])
    accuracy, _ = evaluate(model, *load()[1])
    reported = metadata["accuracy"]
    print(f"held-out accuracy {accuracy:.4f} after {metadata['epochs']} epochs; reported when saved: {reported:.4f}")
    return 0 if abs(accuracy - reported) < 1e-6 else 1


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python evaluate.py DIRECTORY")
    torch.set_num_threads(1)
    sys.exit(main(pathlib.Path(sys.argv[1])))
