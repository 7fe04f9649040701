"""``sharewarden react``: one event through the handler's own code, in memory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from sharewarden.domain.audit import AuditFact, AuditRecord
from sharewarden.domain.observation import ApiCallObservation, JobDescription, JobObservation, Observation
from sharewarden.domain.record import JobRecord, status
from sharewarden.domain.stored import SECOND
from sharewarden.events import BadEvent, observe
from sharewarden.intake.events import take_in
from sharewarden.ports import Runtime, Unavailable
from sharewarden.usecases.react import Reaction

from sharewarden_tools.batch_answers import told_job
from sharewarden_tools.memory import (
    MemoryBatch,
    MemoryClock,
    MemoryDeadLetters,
    MemoryLedger,
    MemoryNoticeQueue,
    MemoryPolicies,
    MemoryWishQueue,
)
from sharewarden_tools.memory_objects import MemoryCheckpoints
from sharewarden_tools.policy.yaml_text import read_bytes

from .output import OK, BadInput, full_time, print_json, record_line, say, unreadable

#: The largest message that SQS carries (SQS quotas); an event on its way to react is one.
LARGEST = 1_048_576


def react(file: Path, describe: Path | None, *, as_json: bool) -> int:
    """Show what the handler makes of the event in ``file``. Raises BadInput."""
    body, event = _read(file)
    try:
        seen = observe(event)
    except BadEvent as error:
        raise BadInput(f"{file}: {error}") from error
    clock = MemoryClock(seen.at + SECOND if seen else 0)
    described = _described(describe, clock) if describe else None
    _check_same_job(file, seen, described)
    reaction = take_in(_runtime(seen, described, clock), body)
    shown = Shown(file, event, reaction, _notes(seen, described), clock.now())
    print_json(shown.as_json()) if as_json else say(*shown.as_lines())
    return OK


@dataclass(frozen=True)
class Shown:
    """What came of it, for people and for machines."""

    file: Path
    event: Mapping[str, Any]
    reaction: Reaction
    notes: list[str]
    now: int

    def as_json(self) -> dict[str, Any]:
        record = self.reaction.record
        return {
            "file": str(self.file),
            "detail-type": self.event.get("detail-type"),
            "outcome": self.reaction.outcome,
            "record": record.model_dump() if record else None,
            "facts": [fact.model_dump() for fact in self.reaction.facts],
            "notes": self.notes,
        }

    def as_lines(self) -> list[str]:
        rows = [("outcome", self.reaction.outcome)]
        if self.reaction.record:
            rows.append(("record", _record_text(self.reaction.record)))
        rows += [("audit", self._fact(fact)) for fact in self.reaction.facts] or [
            ("audit", "nothing to record")
        ]
        rows += [("note", text) for text in self.notes]
        heading = f"{self.file}: {self.event.get('source')}, {self.event.get('detail-type')}"
        return [heading, *(f"  {name:<8} {text}" for name, text in rows)]

    def _fact(self, fact: AuditFact) -> str:
        return record_line(AuditRecord(**dict(fact), recorded_at=self.now), full_time(fact.at))


def _record_text(record: JobRecord) -> str:
    place = f"{record.queue.rpartition('/')[2]}, share {record.share or 'not known'}"
    attempts = f"attempts {len(record.attempts)}, preempted {record.preempted_count}"
    return f"{record.name} is {status(record)} in {place}; {attempts}"


def _read(file: Path) -> tuple[str, Mapping[str, Any]]:
    """Text and value of a JSON file. Raises BadInput."""
    try:
        data = read_bytes(file, LARGEST)
    except OSError as error:
        raise unreadable(file, error) from error
    if len(data) > LARGEST:
        raise BadInput(f"{file}: larger than {LARGEST} bytes, which no event can be")
    try:
        text = data.decode("utf-8-sig")
        return text, json.loads(text)
    except UnicodeDecodeError as error:
        raise BadInput(f"{file}: not text: byte {error.start} is not UTF-8") from error
    except json.JSONDecodeError as error:
        raise BadInput(f"{file}: not JSON: line {error.lineno}, column {error.colno}: {error.msg}") from error
    except RecursionError as error:
        raise BadInput(f"{file}: nested too deeply to be read") from error
    except ValueError as error:  # Python reads no whole number of more than 4300 digits
        raise BadInput(f"{file}: a number in it has too many digits: write a smaller one") from error


def _described(file: Path, clock: MemoryClock) -> JobDescription | None:
    """The answer of DescribeServiceJob in the file, read as the product reads it. Raises BadInput."""
    answer = _read(file)[1]
    if not isinstance(answer, dict):
        raise BadInput(f"{file}: not an answer of DescribeServiceJob, which is an object")
    try:
        return told_job(answer, clock)
    except Unavailable as error:
        raise BadInput(f"{file}: not an answer of DescribeServiceJob: {_cause(error)}") from error
    except (AttributeError, TypeError) as error:
        raise BadInput(f"{file}: not an answer of DescribeServiceJob: {error}") from error


def _cause(error: Unavailable) -> str:
    cause = error.__cause__
    if isinstance(cause, KeyError):
        return f"{cause.args[0]}: missing"
    if isinstance(cause, ValidationError):
        first = cause.errors(include_url=False, include_context=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return str(error)


def _check_same_job(file: Path, seen: Observation | None, described: JobDescription | None) -> None:
    if described and isinstance(seen, JobObservation) and seen.job != described.job:
        raise BadInput(f"{file}: is about job {seen.job}, but --describe is about job {described.job}")


def _runtime(seen: Observation | None, described: JobDescription | None, clock: MemoryClock) -> Runtime:
    ledger, batch = MemoryLedger(), MemoryBatch(clock)
    if described:
        batch.tell(described)
    queues = _queues(seen, described)
    classic = isinstance(seen, JobObservation) and seen.classic
    return Runtime(
        batch=batch,
        ledger=ledger,
        audit=ledger,
        wishes=MemoryWishQueue(clock),
        notices=MemoryNoticeQueue(),
        dead_letters=MemoryDeadLetters(),
        checkpoints=MemoryCheckpoints(clock),
        policies=MemoryPolicies(),
        clock=clock,
        queues=frozenset() if classic else queues,
        classic_queues=queues if classic else frozenset(),
    )


def _queues(seen: Observation | None, described: JobDescription | None) -> frozenset[str]:
    """The queues that event and answer name: they count as ours."""
    named = [described.queue] if described else []
    if isinstance(seen, JobObservation) and seen.queue:
        named.append(seen.queue)
    if isinstance(seen, ApiCallObservation):
        named += [subject.partition("/quota-share/")[0] for subject in seen.subjects]
    return frozenset(named)


def _notes(seen: Observation | None, described: JobDescription | None) -> list[str]:
    if seen is None:
        return ["a call that read or failed: nothing happened"]
    if described or not isinstance(seen, JobObservation | ApiCallObservation):
        return []
    queue = ["the job queue that the event names counts as ours"] if _queues(seen, None) else []
    classic = isinstance(seen, JobObservation) and seen.classic
    unknown = "without --describe, Batch says here that it knows no such job"
    return [*queue, *([] if classic else [unknown])]
