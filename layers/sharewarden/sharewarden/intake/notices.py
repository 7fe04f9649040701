"""Notices, for ``notify``."""

from sharewarden.domain.base import Frozen
from sharewarden.messages import logger
from sharewarden.ports import Runtime
from sharewarden.usecases.notify import notify

from .bodies import read


class NoticeMessage(Frozen):
    """What ``NoticeQueue.send`` puts on the queue: the key of a notice."""

    notice: str


def tell(runtime: Runtime, body: str) -> str:
    """One notice message as JSON text. Raises Poison, Unavailable."""
    message = read(NoticeMessage, body, "notice")
    outcome = notify(runtime, message.notice)
    logger.info("notified", outcome=outcome, notice=message.notice)
    return outcome
