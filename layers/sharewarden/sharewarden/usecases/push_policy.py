"""Put a policy in force: as a new version, over the one that the pusher has seen, on record."""

from collections.abc import Mapping
from datetime import UTC, datetime

from pydantic import Field

from sharewarden.domain.base import Frozen
from sharewarden.domain.policy import Policy
from sharewarden.domain.policy_version import PolicyVersion, changed_fact
from sharewarden.domain.stored import SECOND
from sharewarden.ports import Clock, Conflict, PolicyStore, Unavailable

from .bump import Refused

#: Bytes of the policy, as written and as JSON together: an item of DynamoDB ends at 400 KB.
MAX_BYTES = 300 * 1024
#: Characters of what the pusher says of it.
LONGEST_MESSAGE = 500
#: How often a push is tried that met another transaction of which nothing remains.
ATTEMPTS = 3


class PushRequest(Frozen):
    """``text`` is the YAML as written; ``author`` the caller's ARN."""

    policy: Policy
    text: str
    author: str = Field(min_length=1)
    message: str = Field(default="", max_length=LONGEST_MESSAGE)


class Pushed(Frozen):
    """``new`` is False when that policy was in force already: nothing was written."""

    version: PolicyVersion
    new: bool = True


class Overtaken(Refused):
    """Somebody else's policy is in force by now; the text names them."""


def push(
    store: PolicyStore, clock: Clock, request: PushRequest, seen: PolicyVersion | None, cap: int
) -> Pushed:
    """Put the policy in force if what ``store.current`` said (``seen``) still is.

    ``cap`` is the highest priority that IAM lets ``apply`` set. Raises Refused, Overtaken, Unavailable; after
    Unavailable it is not known whether it was pushed, and to push again finds out.
    """
    refuse_unfit(request, cap)
    if seen is not None and seen.author is not None and seen.hash == request.policy.hash:
        return Pushed(version=seen, new=False)
    version = _next(request, seen, clock.now())
    for _ in range(ATTEMPTS):
        if _put(store, version, seen):
            return Pushed(version=version)
    raise Unavailable(f"version {version.number}: {ATTEMPTS} tries in a row met another transaction")


def refuse_unfit(request: PushRequest, cap: int) -> None:
    """Raises Refused for what may not be in force here."""
    size = len(request.policy.canonical.encode()) + len(request.text.encode())
    if size > MAX_BYTES:
        raise Refused(f"the policy has {size} bytes, as text and as JSON together; {MAX_BYTES} at most")
    over = {name: top for name, top in _tops(request.policy).items() if top > cap}
    if over:
        bands = ", ".join(f"those of {name} reach {top}" for name, top in sorted(over.items()))
        raise Refused(
            f"bands end above {cap}, the most that IAM lets Sharewarden set (MaxPriority): {bands}. "
            "Write bands that end lower, or deploy with a higher MaxPriority"
        )


def _tops(policy: Policy) -> Mapping[str, int]:
    bands = {name: queue.bands for name, queue in policy.queues.items()}
    return {name: max(one.automatic.highest, one.human.highest) for name, one in bands.items()}


def _next(request: PushRequest, seen: PolicyVersion | None, now: int) -> PolicyVersion:
    return PolicyVersion(
        number=1 if seen is None else seen.number + 1,
        hash=request.policy.hash,
        at=now,
        author=request.author,
        message=request.message,
        previous=None if seen is None else seen.number,
        doc=request.policy.canonical,
        text=request.text,
    )


def _put(store: PolicyStore, version: PolicyVersion, seen: PolicyVersion | None) -> bool:
    """False when nothing was written and nothing stands in the way any longer."""
    before = Policy().hash if seen is None else seen.hash
    try:
        store.put(version, seen, changed_fact(version, before), version.at)
    except (Conflict, Unavailable) as error:
        if _is_there(store, version, seen):
            return True
        if isinstance(error, Unavailable):
            raise
        return False
    return True


def _is_there(store: PolicyStore, version: PolicyVersion, seen: PolicyVersion | None) -> bool:
    """Whether an earlier try did it and only its answer was lost. Raises Overtaken."""
    found = store.version(version.number)
    if found == version:
        return True
    winner = found or store.current()
    if winner == seen:
        return False
    raise Overtaken(f"{_by(winner)}: see what it changes (policy diff), then push again")


def _by(winner: PolicyVersion | None) -> str:
    if winner is None:
        return "what was in force is gone from the table"
    if winner.author is None:
        return f"another policy was put into the table by hand: {winner.hash}"
    when = datetime.fromtimestamp(winner.at / SECOND, UTC)
    return f"{winner.author} pushed version {winner.number}, {winner.hash}, at {when:%Y-%m-%dT%H:%M:%SZ}"
