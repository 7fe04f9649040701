"""`make deploy-local`: the deployment with the three-team pool, until told to stop."""

import signal
import sys
import threading

from sharewarden_tools.cli.serve import QUICK
from sharewarden_tools.policy.file import load_policy
from sharewarden_tools.stories.three_team import create_pool

from .deployed import STACK, Deployed, Setup, deployed
from .process import ROOT_USER, EmulatorError


def main() -> int:
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    print("deploying ...", file=sys.stderr)
    try:
        with deployed(Setup(options=QUICK, policy=load_policy())) as stack:
            create_pool(stack)
            _show(stack)
            stop.wait()
    except EmulatorError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _show(stack: Deployed) -> None:
    """What points a shell here, and what to do there."""
    for name, value in stack.environment(ROOT_USER).items():
        print(f"export {name}={value}", flush=True)
    print(
        f"deployed; in a shell with these variables: sharewarden audit list --stack {STACK}", file=sys.stderr
    )


if __name__ == "__main__":
    sys.exit(main())
