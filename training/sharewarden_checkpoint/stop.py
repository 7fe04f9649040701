"""SIGTERM: SageMaker sends it to a job that is stopped or preempted, and kills the rest after 120 seconds.

It reaches the process with id 1 of the container. Under a shell or a toolkit that does not pass it on, start
the container's command with ``python -m sharewarden_checkpoint.forward``.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from types import FrameType
from typing import Any

log = logging.getLogger(__name__)


class Stop:
    """Counts the signals, in a handler that does nothing else but call the one that was there before."""

    def __init__(self) -> None:
        self.count = 0
        self._process = 0
        self._before: Any = None

    def install(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            log.warning("SIGTERM is not seen: Python allows signal handlers in the main thread only")
            return
        self._process = os.getpid()
        self._before = signal.signal(signal.SIGTERM, self._note)

    def restore(self) -> None:
        if signal.getsignal(signal.SIGTERM) == self._note:
            signal.signal(signal.SIGTERM, self._before)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if os.getpid() != self._process:  # a forked worker, which has to end when it is told to
            self.restore()
            signal.raise_signal(number)
            return
        self.count += 1
        if callable(self._before):
            self._before(number, frame)
