"""Looks at what running jobs have saved, for ``watch``."""

from sharewarden.domain.base import Frozen
from sharewarden.messages import logger, rules_failed
from sharewarden.ports import Runtime
from sharewarden.usecases.guarding import FailedRules
from sharewarden.usecases.save_answers import follow_saves
from sharewarden.usecases.watch import watch

from .bodies import read


class LookMessage(Frozen):
    """What ``LookQueue.send`` puts on the queue: a job whose checkpoints are to be looked at."""

    job: str
    asked: int | None = None
    """Version of its wish: not the job is looked at, but those that were asked to save before it."""


def look_at(runtime: Runtime, body: str) -> str:
    """One look message as JSON text. Raises Poison, Unavailable."""
    message = read(LookMessage, body, "look")
    if message.asked is not None:
        return _follow(runtime, message.job, message.asked)
    failed = FailedRules()
    outcome = watch(runtime, message.job, failed)
    if failed.labels:
        rules_failed(len(failed.labels))
    logger.info("watched", outcome=outcome, job=message.job)
    return outcome


def _follow(runtime: Runtime, job: str, wish: int) -> str:
    outcome = follow_saves(runtime, job, wish)
    logger.info("followed", outcome=outcome, job=job, wish=wish)
    return outcome
