"""A small vision transformer, trained by Hugging Face's Trainer."""

from __future__ import annotations

import numpy as np
import torch
import transformers
from digits import load

from tenax import core
from tenax.integrations.transformers import DetCallback

BY_HAND = {
    "hidden": 32,
    "training_arguments": {"learning_rate": 0.003, "num_train_epochs": 8, "per_device_train_batch_size": 32},
}


class Pictures(torch.utils.data.Dataset):
    def __init__(self, images: np.ndarray, labels: np.ndarray) -> None:
        self.images = torch.tensor(images).unsqueeze(1)
        self.labels = torch.tensor(labels)

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return {"pixel_values": self.images[index], "labels": self.labels[index]}


def build(hidden: int) -> transformers.PreTrainedModel:
    config = transformers.ViTConfig(
        image_size=8,
        patch_size=2,
        num_channels=1,
        hidden_size=hidden,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=2 * hidden,
        hidden_dropout_prob=0.1,
        initializer_range=0.2,
        num_labels=10,
    )
    return transformers.ViTForImageClassification(config)


def accuracy(prediction: transformers.EvalPrediction) -> dict[str, float]:
    return {"accuracy": float((prediction.predictions.argmax(axis=1) == prediction.label_ids).mean())}


def main(context: core.Context) -> None:
    args = transformers.TrainingArguments(
        "out",
        seed=context.info.trial.trial_seed if context.info else 0,
        per_device_eval_batch_size=120,
        logging_steps=10,
        eval_strategy="epoch",
        save_strategy="epoch",
        save_total_limit=1,
        report_to="none",
        disable_tqdm=True,
        **context.hparams["training_arguments"],
    )
    transformers.set_seed(args.seed)
    training, held_out = (Pictures(*part) for part in load())
    callback = DetCallback(context, args)
    trainer = transformers.Trainer(
        model=build(context.hparams["hidden"]),
        args=args,
        train_dataset=training,
        eval_dataset=held_out,
        compute_metrics=accuracy,
        callbacks=[callback],
    )
    trainer.train(resume_from_checkpoint=args.resume_from_checkpoint)


if __name__ == "__main__":
    torch.set_num_threads(1)  # a trial has one slot, which is one core here
    with core.init(hparams=BY_HAND) as context:
        main(context)
