"""PyTorch: everything that continues a training exactly where it was, in one file a rank.

``save`` and ``load`` take whatever has ``state_dict`` and ``load_state_dict``, by name: model, optimizer,
scheduler, scaler. The random states of Python, PyTorch and its GPUs travel along.
"""

from __future__ import annotations

import os
import random
import secrets
from typing import Any, Protocol

import torch
import torch.distributed as dist

from .saver import Saver
from .sets import Shard

FILE = "state.pt"


class Stateful(Protocol):
    def state_dict(self) -> Any: ...

    def load_state_dict(self, state_dict: Any, /) -> Any: ...


def save(saver: Saver, step: int, **parts: Stateful) -> None:
    """``save(saver, step, model=model, optimizer=optimizer)`` after ``step`` was done."""
    state = {name: part.state_dict() for name, part in parts.items()}
    with saver.save(step) as folder:
        torch.save({"step": step, "random": _random_states(), "parts": state}, folder / FILE)


def load(saver: Saver, **parts: Stateful) -> int | None:
    """Put the newest complete set into ``parts``; returns its step, None if there is none.

    Raises KeyError if the set was saved without one of ``parts``, RuntimeError if the ranks found different
    sets.
    """
    with saver.reading() as checkpoint:
        _all_found(checkpoint.folder.name if checkpoint else None)
        if checkpoint is None:
            return None
        state = torch.load(saver.shard.part(checkpoint.folder) / FILE, map_location="cpu", weights_only=True)
    for name, part in parts.items():
        part.load_state_dict(state["parts"][name])
    _set_random_states(state["random"])
    return checkpoint.step


def shard() -> Shard:
    """This rank's part, under a run name that rank 0 gives to all. Needs ``init_process_group`` before."""
    run = [f"{os.environ.get('TRAINING_JOB_NAME', '')}-{secrets.token_hex(8)}"]
    dist.broadcast_object_list(run, src=0)
    return Shard(dist.get_rank(), dist.get_world_size(), run[0])


def should_save(saver: Saver, step: int) -> bool:
    """``saver.should_save``, the same answer on every rank: SIGTERM reaches them at different steps."""
    return agreed(saver.should_save(step))


def stopping(saver: Saver) -> bool:
    return agreed(saver.stopping)


def agreed(flag: bool) -> bool:
    """True on all ranks if it is on one."""
    if not (dist.is_available() and dist.is_initialized()):
        return flag
    device = "cuda" if dist.get_backend() == "nccl" else "cpu"
    votes = torch.tensor(int(flag), device=device)
    dist.all_reduce(votes, op=dist.ReduceOp.MAX)
    return bool(votes.item())


def _all_found(name: str | None) -> None:
    """Hosts download from S3 each at its own time: ranks must not go on from different steps."""
    if dist.is_available() and dist.is_initialized():
        names: list[Any] = [None] * dist.get_world_size()
        dist.all_gather_object(names, name)
        if set(names) != {name}:
            raise RuntimeError(f"the ranks found different checkpoints: {names}")


def _random_states() -> dict[str, Any]:
    return {"python": random.getstate(), "cpu": torch.get_rng_state(), "cuda": torch.cuda.get_rng_state_all()}


def _set_random_states(states: dict[str, Any]) -> None:
    random.setstate(states["python"])
    torch.set_rng_state(states["cpu"])
    if len(states["cuda"]) == torch.cuda.device_count():
        torch.cuda.set_rng_state_all(states["cuda"])
