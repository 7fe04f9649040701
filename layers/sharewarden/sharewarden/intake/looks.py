"""Looks at what running jobs have saved, for ``watch``."""

from sharewarden.domain.base import Frozen
from sharewarden.messages import logger, rules_failed
from sharewarden.ports import Runtime
from sharewarden.usecases.guarding import FailedRules
from sharewarden.usecases.watch import watch

from .bodies import read


class LookMessage(Frozen):
    """What ``LookQueue.send`` puts on the queue: a job whose checkpoints are to be looked at."""

    job: str


def look_at(runtime: Runtime, body: str) -> str:
    """One look message as JSON text. Raises Poison, Unavailable."""
    message = read(LookMessage, body, "look")
    failed = FailedRules()
    outcome = watch(runtime, message.job, failed)
    if failed.labels:
        rules_failed(len(failed.labels))
    logger.info("watched", outcome=outcome, job=message.job)
    return outcome
