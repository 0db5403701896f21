"""A small classifier, trained by Keras on PyTorch."""

from __future__ import annotations

import os

os.environ["KERAS_BACKEND"] = "torch"

import keras
import torch
from digits import load

from tenax import core
from tenax.integrations.keras import DeterminedCallback

BY_HAND = {"lr": 0.003, "hidden": 64, "dropout": 0.2, "epochs": 16}


def build(lr: float, hidden: int, dropout: float) -> keras.Model:
    layers = keras.layers
    model = keras.Sequential(
        [
            layers.Input((8, 8)),
            layers.Flatten(),
            layers.Dense(hidden, activation="relu"),
            layers.Dropout(dropout),
            layers.Dense(10),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(lr), loss, metrics=["accuracy"])
    return model


def main(context: core.Context) -> None:
    hparams, trial = context.hparams, context.info.trial if context.info else None
    keras.utils.set_random_seed(trial.trial_seed if trial else 0)
    training, held_out = load()
    continue_id = trial.trial_id if trial else "by hand"
    callback = DeterminedCallback(context, context.latest_checkpoint, continue_id)
    build(hparams["lr"], hparams["hidden"], hparams["dropout"]).fit(
        *training, batch_size=32, epochs=hparams["epochs"], validation_data=held_out, callbacks=[callback]
    )


if __name__ == "__main__":
    torch.set_num_threads(1)  # a trial has one slot, which is one core here
    with core.init(hparams=BY_HAND) as context:
        main(context)
