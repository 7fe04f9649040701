"""One job that is preempted, minute by minute, with the workflow of its care by the definition deployed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from sharewarden.domain.audit import AuditRecord
from sharewarden.domain.base import last_part
from sharewarden.domain.notice import Notice
from sharewarden.domain.observation import AttemptSeen, Status
from sharewarden.domain.policy import Policy
from sharewarden.domain.preemption.case import Case
from sharewarden.intake.care import take_care
from sharewarden_tools.local.definition import StateError, load_definition
from sharewarden_tools.local.workflows import Machine, MachineWorkflows
from sharewarden_tools.memory import MemoryBatch
from sharewarden_tools.memory_objects import MemoryCheckpoints
from sharewarden_tools.template import TEMPLATE

from tests.simulation.faults import Crash, Hook, nothing, watched
from tests.simulation.samples import ARN, FIRST, JOB, SECOND, attempt_row, described, event, share, state
from tests.simulation.world import ENFORCE, MINUTE, NOW, QUEUE, Json, facts_of, stored, world
from tests.unit.checkpoint_kit import URI, manifest

Act = Callable[[], object]
CROSS = "Cross-share preemption triggered to reclaim borrowed capacity"
#: The attempt stops so long after its preemption began, and events of that come at once.
STOPS = 20_000
SWEEP_EVERY = 10 * MINUTE
#: Minutes: the first attempt begins to run, is preempted, and the second one runs.
PREEMPTED, AGAIN = 30, 44


class CareStory:
    """``at`` plans what happens, ``runs`` lets it happen beside the workflow, looks and sweeps.

    ``hook`` is told of the calls that the workflow's steps make (``calls``). ``checkpoints`` and ``batch``
    are the truth; events are what is heard of it.
    """

    def __init__(self, hook: Hook = nothing, policy: Policy = ENFORCE, **job: Any) -> None:
        self.world = world(policy=policy, buckets=frozenset({"arn:aws:s3:::ckpt"}))
        text = (TEMPLATE.parent / "statemachines/preemption.asl.yaml").read_text(encoding="utf-8")
        self.machine = Machine(load_definition(text, {"Care": "care"}), self._step, self.world.clock)
        self.plain = replace(self.world.runtime, workflows=MachineWorkflows(self.machine))
        self.world.runtime = self.plain
        self._care, self.calls = watched(self.plain, hook)
        self.batch: MemoryBatch = self.world.batch
        self.batch.quota_shares[QUEUE] = [share(1)]
        self.checkpoints = self.plain.checkpoints
        assert isinstance(self.checkpoints, MemoryCheckpoints)
        self.checkpoints.put(URI, "log.txt", b"x")
        self.batch.tell(described(status="RUNNABLE", checkpoint_uri=URI, **job))
        self._plan: dict[int, list[Act]] = defaultdict(list)
        self._sweep_at = NOW

    # What happens. Minutes count from NOW.

    def at(self, minute: float, *acts: Act) -> None:
        self._plan[NOW + round(minute * MINUTE)] += acts

    def is_now(self, status: Status, attempt: str | None = None, **more: Any) -> Act:
        """Batch says so from then on, and sends no event."""
        return lambda: self.batch.tell(
            self.batch.descriptions[JOB].model_copy(update={"status": status, "attempt": attempt} | more)
        )

    def hears(self, told: Callable[[], Json] | Json) -> Act:
        """An event, which is told of as it is then."""
        return lambda: self.world.take(told if isinstance(told, dict) else told())

    def becomes(self, status: Status, attempt: str | None = None, **more: Any) -> Act:
        """Batch says so, and an event tells of it."""

        def act() -> None:
            self.is_now(status, attempt, **_as_described(more))()
            row = {"latestAttempt": attempt_row(attempt)} if attempt else {}
            self.hears(state(status, self.world.clock.at, **row, **more))()

        return act

    def saves(self, step: int, attempt: str = FIRST, **members: Any) -> Act:
        """The training helper saves that step."""

        def act() -> None:
            folder, told = f"step-{step:012d}-aaaa", {"training_job": last_part(attempt)} | members
            self.checkpoints.put(URI, f"{folder}/model.pt", b"model")
            text = manifest(step, saved_at=self.world.clock.at, **told)
            self.checkpoints.put(URI, f"{folder}/_SAVED.json", text)

        return act

    def stops(self, attempt: str = FIRST, count: int = 1, status: Status = "RUNNABLE") -> Act:
        """The attempt has stopped for a preemption: Batch counts it."""

        def act() -> None:
            row = AttemptSeen(
                training_job=attempt,
                started_at=NOW,
                stopped_at=self.world.clock.at,
                reason=CROSS,
                preempted=True,
            )
            known = self.batch.descriptions[JOB]
            told = {"attempts": (*known.attempts, row), "preempted_count": count}
            self.is_now(status, None if status == "RUNNABLE" else attempt, **told)()

        return act

    # What is done about it.

    def runs(self, minutes: int) -> None:
        end, clock = NOW + minutes * MINUTE, self.world.clock
        while clock.at < end:
            due = (self.machine.next_due(), self.world.looks.next_due(), min(self._plan, default=None))
            clock.at = max(clock.at, min(self._sweep_at, end, *(at for at in due if at is not None)))
            for act in self._plan.pop(clock.at, ()):
                act()
            self.machine.run_due()
            self.world.watch()
            if self._sweep_at <= clock.at:
                self.world.sweep(f"sweep-{clock.at}")
                self._sweep_at = clock.at + SWEEP_EVERY

    def _step(self, _resource: str, given: Mapping[str, Any]) -> Any:
        try:
            return take_care(self._care, given)
        except Crash as error:
            raise StateError("Lambda.Unknown", "the function is gone") from error

    # What came of it.

    def cases(self) -> list[Case]:
        return [case for case in stored(self.world.ledger, Case) if isinstance(case, Case)]

    def told(self, kind: str) -> list[AuditRecord]:
        return facts_of(self.world.ledger, kind)

    def notices(self, kind: str) -> list[Notice]:
        found = stored(self.world.ledger, Notice)
        return [notice for notice in found if isinstance(notice, Notice) and notice.kind == kind]


def started(at: int) -> Json:
    detail = {"preemptedJobArn": ARN, "status": "RUNNING", "statusReason": f"PREEMPTION_IN_PROGRESS: {CROSS}"}
    return event("Batch Service Job Preemption Started", detail, at)


def completed(story: CareStory, status: Status = "RUNNABLE") -> Json:
    """As of now, by what Batch knows."""
    known = story.batch.descriptions[JOB]
    rows = [
        attempt_row(one.training_job)
        | {"startedAt": one.started_at, "stoppedAt": one.stopped_at, "statusReason": one.reason}
        for one in known.attempts
        if one.preempted
    ]
    summary = {"preemptedAttemptCount": known.preempted_count, "recentPreemptedAttempts": rows}
    detail = {"preemptedJobArn": ARN, "status": status, "preemptionSummary": summary}
    return event("Batch Service Job Preemption Completed", detail, story.world.clock.at)


def begins(story: CareStory) -> None:
    """The first attempt runs and saves steps 2, 14 and 26, each at its minute."""
    story.at(0, story.becomes("RUNNING", FIRST))
    for minute in (2, 14, 26):
        story.at(minute, story.saves(minute))


def preempted(story: CareStory) -> None:
    """It is preempted, and every event says so."""
    story.at(PREEMPTED, story.hears(lambda: started(story.world.clock.at)))
    story.at(
        PREEMPTED + STOPS / MINUTE,
        story.stops(),
        story.hears(lambda: completed(story)),
        story.becomes("RUNNABLE"),
    )


def goes_on(
    story: CareStory, *saves: tuple[int, int], resumed_from: int | None = 26, ends: int = 120
) -> None:
    """The second attempt runs, saves (minute, step), and succeeds."""
    story.at(AGAIN - 4, story.becomes("SCHEDULED", SECOND))
    story.at(AGAIN, story.becomes("RUNNING", SECOND))
    for minute, step in saves or ((56, 38),):
        story.at(minute, story.saves(step, SECOND, resumed_from=resumed_from))
    story.at(ends, ended(story, "SUCCEEDED", "done", SECOND))


def ended(story: CareStory, status: Status, reason: str, attempt: str) -> Act:
    def act() -> None:
        story.becomes(status, attempt, stoppedAt=story.world.clock.at, statusReason=reason)()

    return act


def _as_described(told: Mapping[str, Any]) -> Json:
    names = {"stoppedAt": "stopped_at", "statusReason": "reason"}
    return {names[name]: value for name, value in told.items()}
