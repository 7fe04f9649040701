"""What happens in the pool, one line an event."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from sharewarden.domain.facts import preemption_kind

Tone = Literal["scene", "act", "good", "bad", "plain"]
#: Stands behind a text that AWS does not document.
ASSUMED = "[assumed]"
_CAUSES = {
    "cross-share": "the return of lent capacity",
    "in-share": f"a higher priority in its own share {ASSUMED}",
    "unknown": f"an unknown cause {ASSUMED}",
}
_TONES: dict[str, Tone] = {"RUNNING": "good", "SUCCEEDED": "good", "FAILED": "bad"}


@dataclass(frozen=True)
class Line:
    """``at`` is in epoch milliseconds; ``who`` is a job, or empty for the heading of a scene."""

    at: int
    who: str
    what: str
    tone: Tone = "plain"


class Timeline:
    """Hears the lab's events and tells ``show`` those that people care about, as it happened.

    CloudTrail brings a call seconds after it was made, so lines wait until ``tell`` lets them go.
    """

    def __init__(self, now: Callable[[], int], show: Callable[[Line], None]) -> None:
        self._now = now
        self._show = show
        self._waiting: list[Line] = []
        self._jobs: dict[str, tuple[str, str]] = {}
        """Name and last state by ARN."""
        self._hearers: Mapping[str, Callable[[dict[str, Any]], None]] = {
            "Batch Service Job State Change": self._moved,
            "Batch Service Job Preemption Started": self._preempted,
            "AWS API Call via CloudTrail": self._called,
        }

    def hear(self, event: Mapping[str, Any]) -> None:
        hearer = self._hearers.get(event["detail-type"])
        if hearer:
            hearer(event["detail"])

    def say(self, who: str, what: str, tone: Tone = "plain", at: int | None = None) -> None:
        """A line of its own; it happened at ``at``, now if not given."""
        self._waiting.append(Line(self._now() if at is None else at, who, what, tone))

    def tell(self, until: int) -> None:
        """Show what happened up to ``until`` (epoch ms)."""
        for line in sorted((line for line in self._waiting if line.at <= until), key=_order):
            self._show(line)
        self._waiting = [line for line in self._waiting if line.at > until]

    def _moved(self, detail: dict[str, Any]) -> None:
        arn, name, status = detail["jobArn"], detail["jobName"], detail["status"]
        _, before = self._jobs.get(arn, (name, "SUBMITTED"))
        self._jobs[arn] = (name, status)
        self.say(name, f"{before} -> {status}", _TONES.get(status, "plain"))

    def _preempted(self, detail: dict[str, Any]) -> None:
        arn = detail["preemptedJobArn"]
        name, status = self._jobs[arn]
        self._jobs[arn] = (name, "preempted")
        kind = preemption_kind(detail["statusReason"])
        self.say(name, f"{status} -> preempted ({kind}) by {_CAUSES[kind]}", "bad")

    def _called(self, detail: dict[str, Any]) -> None:
        if detail["eventName"] == "UpdateServiceJob" and "errorCode" not in detail:
            request = detail["requestParameters"]
            caller = detail["userIdentity"]["arn"].partition("/")[2]
            name = next((n for arn, (n, _) in self._jobs.items() if arn.endswith(request["jobId"])), "?")
            made_at = int(datetime.fromisoformat(detail["eventTime"]).timestamp() * 1000)
            self.say(name, f"priority set to {request['schedulingPriority']} by {caller}", "act", made_at)


def _order(line: Line) -> tuple[int, bool]:
    """By time; what somebody did before what came of it at once, else as heard."""
    return line.at, line.tone not in ("scene", "act")
