"""A notice: what a person is told of, kept with the fact that it tells and delivered by ``notify``.

It is committed together with its fact, under the fact's own key, so one fact is told once whoever finds it.
"""

from typing import ClassVar, Literal

from .stored import DAY, Stored

#: How long a finished notice is remembered: longer than anything that could bring it again.
KEPT = 30 * DAY

Severity = Literal["info", "warning", "alarm"]


class Notice(Stored):
    """``waiting`` until ``notify`` claims it (``sending``); ``unsure``: nobody knows whether it went out."""

    item: ClassVar[str] = "NOTICE"

    fact: str
    """Natural key of the audit fact."""
    kind: str
    """Kind of the fact."""
    at: int
    severity: Severity = "warning"
    title: str
    text: str
    queue: str
    """ARN of the job queue, under which a sweep finds what was not delivered."""
    share: str | None = None
    team: str | None = None
    job: str | None = None
    job_name: str | None = None
    policy: str | None = None
    mode: Literal["shadow", "enforce", "observed"] = "observed"
    state: Literal["waiting", "sending", "sent", "unsure", "failed"] = "waiting"
    tried_at: int = 0
    tries: int = 0

    @property
    def key(self) -> str:
        return self.fact

    @property
    def expires_at(self) -> int | None:
        return None if self.state in {"waiting", "sending"} else max(self.at, self.tried_at) + KEPT

    @property
    def open_queue(self) -> str | None:
        return self.queue if self.state in {"waiting", "sending"} else None
