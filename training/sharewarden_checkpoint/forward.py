"""``python -m sharewarden_checkpoint.forward COMMAND ...``: hand SIGTERM on to every process of the command.

SageMaker signals process 1 of the container alone. Shells and toolkits there die of it, or ignore it, and
the training script never hears of it (aws/sagemaker-training-toolkit#125, aws/deep-learning-containers#632).
As the container's entry point this is process 1. After a SIGTERM it stays until the last process of the
command has ended: a shell in between that died first cuts no save short. Ends with the command's code.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from types import FrameType


class Forward:
    def __init__(self) -> None:
        self.stopped = False
        self._group: int | None = None

    def run(self, command: list[str]) -> int:
        signal.signal(signal.SIGTERM, self._note)
        child = subprocess.Popen(command, start_new_session=True)  # noqa: S603  # the container's own command
        self._group = child.pid
        if self.stopped:
            self._pass_on()
        code = child.wait()
        while self.stopped and self._others_left():
            time.sleep(0.1)
        return code if code >= 0 else 128 - code

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self.stopped = True
        self._pass_on()

    def _pass_on(self) -> None:
        if self._group is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._group, signal.SIGTERM)

    def _others_left(self) -> bool:
        with suppress(
            ChildProcessError
        ):  # process 1 inherits orphans, which are there until it collects them
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        try:
            os.killpg(self._group or 0, 0)
        except ProcessLookupError:
            return False
        return True


if __name__ == "__main__":
    if not sys.argv[1:]:
        sys.exit("usage: python -m sharewarden_checkpoint.forward COMMAND ...")
    sys.exit(Forward().run(sys.argv[1:]))
