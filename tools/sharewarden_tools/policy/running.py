"""Runs policy tests: what a case gives goes through the deployed decision and must come out as expected."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from sharewarden.domain.base import Frozen, last_part
from sharewarden.domain.hints import hint
from sharewarden.domain.known import job_facts, sla_facts
from sharewarden.domain.policy import Policy
from sharewarden.domain.record import JobRecord, Snapshot
from sharewarden.domain.rules.facts import Facts, JobFacts, ShareFacts
from sharewarden.domain.stored import SECOND

from sharewarden_tools.submission import read_request, request_facts

from .cases import Case, CaseFile, Expected, GivenJob, GivenShare
from .problems import Loc, Problem
from .reading import shown
from .trial import Finding, Outcome, try_change, try_job, try_training
from .yaml_text import Document

#: What the tags and the instance type say of a job, unless the case says something else.
_DERIVED = (
    *("team", "tag_team", "user", "project", "sla", "deadline", "expected_runtime", "lineage"),
    *("odd_tags", "gpus"),
)


class Result(NamedTuple):
    """What came of a case: it passed if there are no ``differences``."""

    name: str
    loc: Loc
    differences: tuple[str, ...]
    outcome: Outcome


def run_cases(policy: Policy, cases: CaseFile) -> tuple[Result, ...]:
    """Raises BadRequest for a request that is none."""
    return tuple(_run(policy, case, ("cases", index)) for index, case in enumerate(cases.cases))


def misnamed(policy: Policy, cases: CaseFile, document: Document) -> Iterator[Problem]:
    """Guardrails and queues that cases name and the policy has not; two cases of one name."""
    names: set[str] = set()
    for index, case in enumerate(cases.cases):
        for loc, text in _faults(policy, case, names):
            inner = ("cases", index, *loc)
            yield Problem(document.place(inner), inner, text)
        names.add(case.name)


def _faults(policy: Policy, case: Case, names: set[str]) -> Iterator[tuple[Loc, str]]:
    labels = {entry.label for entry in policy.guardrails}
    expected = [(("expect", index, "finding"), one.finding) for index, one in enumerate(case.expect)]
    more = [(("holds", index), name) for index, name in enumerate(case.holds)]
    more += [(("undecided", index), name) for index, name in enumerate(case.undecided)]
    for loc, label in (*expected, *more):
        if label not in labels:
            yield loc, f"the policy has no guardrail {label!r}: {hint(label, labels)}"
    if case.name in names:
        yield ("name",), f"{case.name!r} is the name of an earlier case: give this one its own"
    if case.job is not None and not case.job.queue and len(policy.queues) != 1:
        yield ("job",), f"the policy has {len(policy.queues)} queues: write which one (queue: NAME)"


def _run(policy: Policy, case: Case, loc: Loc) -> Result:
    outcome = _outcome(policy, case)
    return Result(case.name, loc, tuple(_differences(case, outcome)), outcome)


def _outcome(policy: Policy, case: Case) -> Outcome:
    if case.share_change is not None:
        given = {"now": case.now, "queue": case.share_change.queue or _only_queue(policy)}
        return try_change(policy, case.share_change.model_copy(update=given))
    if case.training is not None:
        return try_training(policy, case.training.model_copy(update={"now": case.now}))
    return try_job(policy, _with_pool(policy, case, _job(policy, case)))


def _only_queue(policy: Policy) -> str:
    return next(iter(policy.queues), "")


def _job(policy: Policy, case: Case) -> JobFacts:
    if case.request is not None:
        return request_facts(read_request(case.request), policy, None, case.now).job
    given = case.job or GivenJob()
    queue = last_part(given.queue or _only_queue(policy))
    derived = job_facts(_record(given, queue, case.now), None, policy, case.now).job
    own = given.model_fields_set
    filled = {name: getattr(derived, name) for name in _DERIVED if name not in own}
    return given.model_copy(update={"queue": queue, **filled})


def _record(given: GivenJob, queue: str, now: int) -> JobRecord:
    return JobRecord(
        job=given.id,
        arn=given.id,
        name=given.name,
        queue=queue,
        created_at=now,
        share=given.share,
        tags=tuple(sorted((given.tags or {}).items())),
        instance_type=given.instance_type,
        instance_count=given.instances,
        snapshot=Snapshot(read_at=now, status=given.status),
    )


def _with_pool(policy: Policy, case: Case, job: JobFacts) -> Facts:
    """What only a look at the queue shows is known if the case gives it."""
    return Facts(
        now=case.now,
        job=job,
        share=None if case.share is None else _share(policy, job, case.share),
        team=_named(case.team, job.team),
        user=_named(case.user, job.user),
        sla=sla_facts(job, policy),
    )


def _share(policy: Policy, job: JobFacts, given: GivenShare) -> ShareFacts:
    rules = policy.share(job.queue, job.share)
    said = {
        "name": job.share or "",
        "protected": rules.protected,
        "min_runtime": rules.min_runtime // SECOND,
    }
    return given.model_copy(update={k: v for k, v in said.items() if k not in given.model_fields_set})


def _named(given: Any, name: str | None) -> Any:
    if not isinstance(given, Frozen):
        return None
    return given if "name" in given.model_fields_set else given.model_copy(update={"name": name or ""})


def _differences(case: Case, outcome: Outcome) -> Iterator[str]:
    found = {finding.label: finding for finding in outcome.findings}
    expected = {one.finding for one in case.expect}
    for one in case.expect:
        yield from _against(one, found.get(one.finding), outcome)
    for label in sorted(found.keys() - expected):
        yield f"{label} is not expected, and it {_told(found[label])}"
    for label in sorted({*case.holds} - {*outcome.held}):
        yield f"{label} should hold, but {_instead(label, found, outcome)}"
    for label in sorted({*case.undecided} - outcome.undecided.keys()):
        yield f"{label} should not be decidable, but {_instead(label, found, outcome)}"
    if not (found or outcome.held or case.undecided):
        yield f"nothing was decided, so this tests nothing: {_reasons(outcome)}"


def _against(one: Expected, finding: Finding | None, outcome: Outcome) -> Iterator[str]:
    if finding is None:
        yield f"{one.finding} should fire, but {_instead(one.finding, {}, outcome)}"
        return
    for name in ("action", "mode"):
        wanted, got = getattr(one, name), getattr(finding, name)
        if wanted not in (None, got):
            less = finding.less if name == "action" else ""
            yield f"{one.finding}: {name} should be {wanted}, and is {got}{less}"
    if one.text is not None and one.text not in finding.text:
        yield f"{one.finding}: the text should have {shown(one.text)}, and is {finding.text!r}"


def _instead(label: str, found: dict[str, Finding], outcome: Outcome) -> str:
    if label in found:
        return f"it {_told(found[label])}"
    if label in outcome.undecided:
        return f"it is not decided: {outcome.undecided[label]}"
    return (
        "it holds" if label in outcome.held else "it is not about this (queues, shares, teams, or its kind)"
    )


def _told(finding: Finding) -> str:
    return f"fires with {finding.follows}: {finding.text}"


def _reasons(outcome: Outcome) -> str:
    known = [f"{label} ({why})" for label, why in outcome.undecided.items()]
    return ", ".join(known) or "no guardrail is about it"
