"""A training loop in PyTorch that preemption cannot hurt: stop or kill it, start it again, same model.

    python examples/training/train_torch.py --folder /tmp/checkpoints --steps 200

The entry point of a SageMaker training job: without options it uses the folder that SageMaker uploads. Here
the data is made up; the order of the samples follows from the epoch, so a step needs no more than its number.
"""

import argparse
import hashlib
import time

import torch
from sharewarden_checkpoint import Saver
from sharewarden_checkpoint.torch import load, save
from torch import nn

SAMPLES, BATCH, WIDTH = 512, 16, 8


def main() -> None:
    options = parse()
    torch.manual_seed(0)
    inputs, targets = data()
    model = nn.Sequential(nn.Linear(WIDTH, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, options.steps)
    whole = {"model": model, "optimizer": optimizer, "scheduler": scheduler}

    with Saver(options.folder, every=options.every) as saver:
        done = load(saver, **whole) or 0
        print(f"goes on from step {done}", flush=True)
        for step in range(done + 1, options.steps + 1):
            batch = samples_of(step)
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(inputs[batch]), targets[batch])
            loss.backward()
            optimizer.step()
            scheduler.step()
            time.sleep(options.pace)
            if saver.should_save(step) or step == options.steps:
                save(saver, step, **whole)
                print(f"saved step {step}, loss {loss.item():.6f}", flush=True)
            if saver.stopping:
                print(f"stopped after step {step}", flush=True)
                return
    print(f"weights {fingerprint(model)}", flush=True)


def data() -> tuple[torch.Tensor, torch.Tensor]:
    inputs = torch.randn(SAMPLES, WIDTH, generator=torch.Generator().manual_seed(1))
    return inputs, inputs.square().sum(dim=1, keepdim=True)


def samples_of(step: int) -> torch.Tensor:
    epoch, batch = divmod(step - 1, SAMPLES // BATCH)
    order = torch.randperm(SAMPLES, generator=torch.Generator().manual_seed(epoch))
    return order[batch * BATCH : (batch + 1) * BATCH]


def fingerprint(model: nn.Module) -> str:
    """Of every bit of the weights."""
    digest = hashlib.sha256()
    for value in model.state_dict().values():
        digest.update(value.numpy().tobytes())
    return digest.hexdigest()


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Train a tiny model, through any number of preemptions.")
    parser.add_argument("--folder", default="/opt/ml/checkpoints")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--every", type=float, default=600, help="seconds from one save to the next")
    parser.add_argument("--pace", type=float, default=0, help="seconds that a step takes longer")
    return parser.parse_args()


if __name__ == "__main__":
    main()
