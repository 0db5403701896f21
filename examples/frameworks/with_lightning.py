"""A small classifier, trained by Lightning's Trainer."""

from __future__ import annotations

import lightning
import torch
from digits import load
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from tenax import core
from tenax.integrations.lightning import LightningCallback

BY_HAND = {"lr": 0.003, "hidden": 64, "dropout": 0.2, "epochs": 16}


class Digits(lightning.LightningModule):
    def __init__(self, lr: float, hidden: int, dropout: float) -> None:
        super().__init__()
        self.lr = lr
        self.layers = nn.Sequential(
            nn.Flatten(), nn.Linear(64, hidden), nn.ReLU(), nn.Dropout(dropout), nn.Linear(hidden, 10)
        )

    def training_step(self, batch: list[torch.Tensor], batch_idx: int) -> torch.Tensor:
        images, labels = batch
        loss = nn.functional.cross_entropy(self.layers(images), labels)
        self.log("loss", loss)
        return loss

    def validation_step(self, batch: list[torch.Tensor], batch_idx: int) -> None:
        images, labels = batch
        scores = self.layers(images)
        self.log("val_loss", nn.functional.cross_entropy(scores, labels))
        self.log("val_accuracy", (scores.argmax(dim=1) == labels).float().mean())

    def configure_optimizers(self) -> dict:
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.lr)
        return {"optimizer": optimizer, "lr_scheduler": torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.95)}


def main(context: core.Context) -> None:
    hparams = context.hparams
    lightning.seed_everything(context.info.trial.trial_seed if context.info else 0)
    training, held_out = (TensorDataset(*map(torch.tensor, part)) for part in load())
    callback = LightningCallback(context)
    trainer = lightning.Trainer(
        max_epochs=hparams["epochs"],
        devices=context.distributed.local_size,
        num_nodes=context.distributed.cross_size,
        callbacks=[callback],
        log_every_n_steps=10,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(
        Digits(hparams["lr"], hparams["hidden"], hparams["dropout"]),
        DataLoader(training, batch_size=32, shuffle=True),
        DataLoader(held_out, batch_size=120),
        ckpt_path=callback.ckpt_path,
    )


if __name__ == "__main__":
    torch.set_num_threads(1)  # a trial has one slot, which is one core here
    with core.init(hparams=BY_HAND) as context:
        main(context)
