"""Hugging Face's ``Trainer`` on a tiny language model, made from its configuration: nothing is downloaded.

    python examples/training/train_huggingface.py --folder /tmp/checkpoints --output /tmp/trainer --steps 40

``Trainer`` writes its checkpoints into ``--output``, beside the folder that SageMaker uploads; the callback
puts each into that folder as a whole.
"""

import argparse
import hashlib
import time

import torch
from sharewarden_checkpoint import Saver
from sharewarden_checkpoint.huggingface import SaveCallback, resume_from
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments, set_seed

VOCABULARY, LENGTH = 64, 16


class Texts(torch.utils.data.Dataset):
    """Counting from somewhere, always the same."""

    def __len__(self) -> int:
        return 256

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        ids = (torch.arange(LENGTH) + index) % VOCABULARY
        return {"input_ids": ids, "labels": ids}


class Pace(TrainerCallback):
    """Makes a step longer, as a larger model would, and tells which was done."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def on_step_end(self, args, state, control, **_):  # noqa: ARG002
        time.sleep(self.seconds)
        print(f"step {state.global_step}", flush=True)


def main() -> None:
    options = parse()
    set_seed(0)
    model = GPT2LMHeadModel(
        GPT2Config(vocab_size=VOCABULARY, n_positions=LENGTH, n_embd=16, n_layer=1, n_head=2)
    )
    arguments = TrainingArguments(
        options.output,
        max_steps=options.steps,
        per_device_train_batch_size=8,
        save_strategy="no",  # the saver says when
        save_total_limit=1,  # in the output folder; the saver keeps its own sets
        report_to="none",
        disable_tqdm=True,
        logging_strategy="no",
        use_cpu=not torch.cuda.is_available(),
    )
    with Saver(options.folder, every=options.every) as saver:
        callbacks = [Pace(options.pace), SaveCallback(saver)]
        trainer = Trainer(model, arguments, train_dataset=Texts(), callbacks=callbacks)
        trainer.train(resume_from_checkpoint=resume_from(saver))
        if saver.stopping:
            print(f"stopped after step {trainer.state.global_step}", flush=True)
            return
    digest = hashlib.sha256()
    for value in model.state_dict().values():
        digest.update(value.cpu().numpy().tobytes())
    print(f"weights {digest.hexdigest()}", flush=True)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Train a tiny model with Trainer, through any preemption.")
    parser.add_argument("--folder", default="/opt/ml/checkpoints")
    parser.add_argument(
        "--output",
        default="/tmp/trainer",  # noqa: S108  # a container's own
        help="not below --folder",
    )
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--every", type=float, default=600, help="seconds from one save to the next")
    parser.add_argument("--pace", type=float, default=0, help="seconds that a step takes longer")
    return parser.parse_args()


if __name__ == "__main__":
    main()
