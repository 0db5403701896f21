"""A short trial with PyTorch: one step of a small model, and its loss as the only metric."""

import time

print(f"first line at {time.time():.6f}", flush=True)

import torch  # noqa: E402

from tenax import core  # noqa: E402

model = torch.nn.Linear(64, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss = torch.nn.functional.cross_entropy(model(torch.randn(32, 64)), torch.randint(8, (32,)))
loss.backward()
optimizer.step()
with core.init() as context:
    context.train.report_validation_metrics(1, {"loss": loss.item()})
    print(f"reported at {time.time():.6f}", flush=True)
