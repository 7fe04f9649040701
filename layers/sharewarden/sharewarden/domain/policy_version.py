"""What was pushed: the versions of the policy, each with who pushed it and why."""

from .audit import AuditFact, subject_key
from .base import Frozen
from .policy import Policy, hash_of


class PolicyEntry(Frozen):
    """One line of the history. Numbers rise by one; the same policy may come back under another number."""

    number: int
    hash: str
    at: int
    author: str | None = None
    """ARN of the caller; None: the item was put into the table by hand, past the commands."""
    message: str = ""
    previous: int | None = None
    """Number of the version that was in force before."""


class PolicyVersion(PolicyEntry):
    """A version as it is kept: nothing changes it."""

    doc: str
    """The policy as JSON, which is what the functions read."""
    text: str = ""
    """The YAML as it was written, with its comments; empty for what was put by hand."""

    def load(self) -> Policy:
        """Raises ValidationError or ImportError when this version of the code does not know such a policy."""
        return Policy.model_validate_json(self.doc)


def put_by_hand(doc: str, newest: int | None) -> PolicyVersion:
    """What lies in the table without having been pushed, as the version after the ``newest`` that was.

    Its hash is the policy's, if it is one.
    """
    number = 1 if newest is None else newest + 1
    bare = PolicyVersion(number=number, hash=hash_of(doc), at=0, previous=newest, doc=doc)
    try:
        return bare.model_copy(update={"hash": bare.load().hash})
    except (ValueError, ImportError):
        return bare


def changed_fact(version: PolicyVersion, before: str) -> AuditFact:
    """The push of ``version`` over the policy with the hash ``before``."""
    return AuditFact(
        key=subject_key("policy-changed", version.number, version.hash, version.at),
        kind="policy-changed",
        at=version.at,
        actor=version.author or "",
        mode="enforce",
        before=before,
        after=version.hash,
        reason=version.message,
        figures={"number": version.number, "previous": version.previous},
        policy=version.hash,
    )
