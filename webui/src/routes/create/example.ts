/** A script for whoever wants to see an experiment and has no code yet: what it reports is what the configuration at the
 *  beginning looks for. It runs outside of a cluster as well. */
export const EXAMPLE = `"""Trains nothing: reports a loss that is least where lr is about 0.01. Put your own training in its place."""

import math
import time

import tenax
from tenax import core

info = tenax.get_cluster_info()
hparams = info.trial.hparams if info else {}
distance = abs(math.log10(hparams.get("lr", 0.1)) + 2)

with core.init() as context:
    for step in range(1, 101):
        time.sleep(0.1)
        loss = 1 / step + distance / 10
        context.train.report_training_metrics(step, {"loss": loss})
        if step % 10 == 0:
            context.train.report_validation_metrics(step, {"loss": loss})
            print(f"step {step}: loss {loss:.4f}")
        if context.preempt.should_preempt():
            break  # It is paused. With a checkpoint it would go on from here; without, it begins again.
`;
