"""Hugging Face ``Trainer``: its checkpoints, whole or not there.

``Trainer`` writes ``checkpoint-N`` file by file into its ``output_dir``, which therefore must not be the
folder that SageMaker uploads. This callback copies each one into a set of the saver:

    with Saver() as saver:
        trainer = Trainer(..., callbacks=[SaveCallback(saver)])     # save_strategy="no": the saver says when
        trainer.train(resume_from_checkpoint=resume_from(saver))
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import torch.distributed as dist
from transformers import TrainerCallback

from .saver import Saver
from .torch import agreed


def resume_from(saver: Saver) -> str | None:
    """For ``Trainer.train(resume_from_checkpoint=...)``: the newest complete set, None without one."""
    newest = saver.latest()
    return str(newest.folder) if newest else None


class SaveCallback(TrainerCallback):  # type: ignore[misc]  # mypy does not see transformers
    """Asks the saver after every step, and ends the training after the save for a SIGTERM.

    Under ``torchrun`` the process of rank 0 saves what its ``output_dir`` holds: the whole of a model that is
    replicated (DDP). What other hosts keep to themselves (a sharded model) it cannot see.
    """

    def __init__(self, saver: Saver) -> None:
        self.saver = saver

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        stop = agreed(self.saver.stopping)
        due = agreed(state.is_world_process_zero and self.saver.should_save(state.global_step))
        control.should_save |= due or stop
        control.should_training_stop |= stop

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        if dist.is_available() and dist.is_initialized():
            dist.barrier()  # every process has written its random state
        if state.is_world_process_zero:
            with self.saver.save(state.global_step) as folder:
                made = Path(args.output_dir) / f"checkpoint-{state.global_step}"
                shutil.copytree(made, folder, dirs_exist_ok=True)
