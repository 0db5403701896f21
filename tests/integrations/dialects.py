"""Scripts as users of Determined's callbacks have them: which package they import is filled in."""

from __future__ import annotations

#: First lines of each, by the name that it knows.
NAMES = {
    "determined": "import determined as det\nfrom determined.{part} import {names}\n",
    "tenax": "import tenax as det\nfrom tenax.integrations.{part} import {names}\n",
}

#: Hyperparameters as a section for the framework, flags of its own beside them; ``seconds``: what each sample takes.
TRANSFORMERS = """
import logging
import time

import datasets_of_ours
import torch
import transformers

logger = logging.getLogger(__name__)


def model_init(hidden):
    config = transformers.BertConfig(
        vocab_size=20, hidden_size=hidden, num_hidden_layers=1, num_attention_heads=2, intermediate_size=hidden,
        max_position_embeddings=64, num_labels=10, initializer_range=0.2,
    )
    return transformers.BertForSequenceClassification(config)


def compute_metrics(prediction):
    return {"accuracy": float((prediction.predictions.argmax(-1) == prediction.label_ids).mean())}


def main(core_context, hparams, training_args, det_callback):
    transformers.set_seed(training_args.seed)
    train, evaluation = datasets_of_ours.splits(hparams.get("seconds", 0))
    trainer = transformers.Trainer(
        model=model_init(hparams["hidden"]),
        args=training_args,
        train_dataset=train,
        eval_dataset=evaluation,
        compute_metrics=compute_metrics,
    )
    trainer.add_callback(det_callback)
    checkpoint = None
    if training_args.resume_from_checkpoint is not None:
        checkpoint = training_args.resume_from_checkpoint
    if training_args.do_train:
        result = trainer.train(resume_from_checkpoint=checkpoint)
        logger.info("trained to %s", result.global_step)


def run():
    torch.set_num_threads(1)
    info = det.get_cluster_info()
    assert info is not None
    hparams = info.trial.hparams
    parser = transformers.HfArgumentParser(transformers.TrainingArguments)
    given = {"seed": info.trial.trial_seed, "output_dir": "hf", "report_to": "none", **hparams["training_arguments"]}
    (training_args,) = parser.parse_dict(given)
    # One process: of several ranks it would be from_torch_distributed().
    distributed = det.core.DummyDistributedContext()
    with det.core.init(distributed=distributed) as core_context:
        user_data = {"finetuned_from": None, "tasks": "digits"}
        callback = DetCallback(
            core_context, training_args, filter_metrics=["loss", "accuracy"], user_data=user_data
        )
        main(core_context, hparams, training_args, callback)


if __name__ == "__main__":
    run()
"""

#: Digits as words, one for each pixel.
DATASETS = """
import time

import torch
from sklearn.datasets import load_digits


class Digits(torch.utils.data.Dataset):
    def __init__(self, images, labels, seconds):
        self.images, self.labels, self.seconds = images, labels, seconds

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        time.sleep(self.seconds)
        return {"input_ids": self.images[index], "labels": self.labels[index]}


def splits(seconds):
    pixels, labels = (torch.tensor(part).long() for part in load_digits(return_X_y=True))
    return Digits(pixels[:400], labels[:400], seconds), Digits(pixels[400:600], labels[400:600], 0)
"""

KERAS = '''
import logging
import os

os.environ["KERAS_BACKEND"] = "torch"
import keras
import numpy as np
from sklearn.datasets import load_digits


class Callback(DeterminedCallback):
    """As it comes."""


def build_model(hparams):
    model = keras.models.Sequential(
        [
            keras.layers.Input(shape=(64,)),
            keras.layers.Dense(hparams["dense"], activation="relu"),
            keras.layers.Dropout(hparams["dropout"]),
            keras.layers.Dense(10, activation="softmax"),
        ]
    )
    model.compile(
        optimizer=keras.optimizers.Adam(learning_rate=hparams["lr"]),
        loss="sparse_categorical_crossentropy",
        metrics=["accuracy"],
    )
    return model


def main(core_context, checkpoint, continue_id, hparams):
    pixels, labels = load_digits(return_X_y=True)
    pixels = (pixels / 16).astype(np.float32)
    det_cb = Callback(
        core_context, checkpoint=checkpoint, continue_id=continue_id, train_metrics_report_period=10
    )
    build_model(hparams).fit(
        x=pixels[:400],
        y=labels[:400],
        validation_data=(pixels[400:600], labels[400:600]),
        epochs=hparams["epochs"],
        callbacks=[det_cb],
        verbose=2,
    )


def run():
    logging.basicConfig(level=logging.INFO)
    info = det.get_cluster_info()
    assert info is not None
    keras.utils.set_random_seed(info.trial.trial_seed)
    with det.core.init() as core_context:
        main(
            core_context,
            checkpoint=info.latest_checkpoint,
            continue_id=info.trial.trial_id,
            hparams=info.trial.hparams,
        )


if __name__ == "__main__":
    run()
'''
