"""What the policy will say of a job, before it is submitted: the same decisions with the same texts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from time import time
from typing import Any, NamedTuple

import botocore.session
from botocore.validate import ParamValidator
from sharewarden.domain.base import well_formed
from sharewarden.domain.fits import Misfit, misfit
from sharewarden.domain.hints import hint
from sharewarden.domain.known import TAGS_SETTLE, job_facts
from sharewarden.domain.observation import JobDescription, ShareDescription
from sharewarden.domain.policy import Policy
from sharewarden.domain.record import absorb, new_record
from sharewarden.domain.rules.facts import Facts
from sharewarden.ports import Unavailable

from .batch_answers import told_job, told_shares
from .memory import MemoryClock
from .policy.file import load_policy
from .policy.trial import Finding, Outcome, try_job

#: Bytes that Batch takes of a payload and of a whole request (Batch user guide, service quotas).
LARGEST_PAYLOAD, LARGEST_REQUEST = 10 * 1024, 30 * 1024
#: The only type there is (SubmitServiceJob, serviceJobType).
TYPE = "SAGEMAKER_TRAINING"
#: The rule that says what preflight looks for anyway.
CANNOT_FIT = "cannot-fit"


class BadRequest(ValueError):
    """It is no SubmitServiceJob request; one line a fault."""

    def __init__(self, *lines: str) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines


class Obstacle(NamedTuple):
    """Why Batch will not take the job or never start it, whatever the policy says."""

    label: str
    text: str


class Report(NamedTuple):
    """What is known before the submission. A notebook shows it as a table."""

    job: str
    queue: str
    share: str | None
    policy: str
    paused: bool
    obstacles: tuple[Obstacle, ...]
    outcome: Outcome

    @property
    def blocks(self) -> bool:
        """Whether the job would not run, or a guardrail would change or end it."""
        return bool(self.obstacles) or any(
            finding.acts or finding.rule == CANNOT_FIT for finding in self.outcome.findings
        )

    def rows(self) -> Iterator[tuple[str, str, str]]:
        """What follows, from which rule, and its text."""
        for obstacle in self.obstacles:
            yield "never starts", obstacle.label, obstacle.text
        for finding in self.outcome.findings:
            never = ", and it never starts" if finding.rule == CANNOT_FIT else ""
            yield f"{finding.follows}{never}", finding.label, finding.text
        for label, why in self.outcome.undecided.items():
            yield "not decided", label, why

    def lines(self) -> Iterator[str]:
        """For a terminal."""
        yield self._heading()
        yield from (
            f"  {follows}: {label}: {self.job} {_sentence(follows, text)}"
            for follows, label, text in self.rows()
        )
        yield f"  {len(self.outcome.held)} guardrails hold"

    def as_json(self) -> dict[str, Any]:
        return {
            "job": self.job,
            "queue": self.queue,
            "share": self.share,
            "policy": self.policy,
            "paused": self.paused,
            "blocks": self.blocks,
            "obstacles": [one._asdict() for one in self.obstacles],
            "findings": [_as_json(one) for one in self.outcome.findings],
            "undecided": self.outcome.undecided,
            "held": self.outcome.held,
        }

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def _repr_html_(self) -> str:
        """For a notebook."""
        rows = "".join(
            f"<tr>{''.join(f'<td style=text-align:left>{escape(cell)}</td>' for cell in row)}</tr>"
            for row in self.rows()
        )
        held = f"<p>{len(self.outcome.held)} guardrails hold</p>"
        return f"<p><b>{escape(self._heading())}</b></p><table>{rows}</table>{held}"

    def _heading(self) -> str:
        paused = "; the policy is paused, nothing is done until it is not" if self.paused else ""
        where = f"{self.queue}, share {self.share or '(none)'}"
        return f"{self.job} in {where}, under policy {self.policy}{paused}"


def preflight(
    request: Mapping[str, Any],
    policy: Policy | Path | str | None = None,
    shares: Mapping[str, Any] | None = None,
) -> Report:
    """What would be found of a job that is not submitted yet. Asks nobody.

    ``request``: what you would give to boto3's ``submit_service_job``; the payload may be an object.
    ``policy``: a policy or its file; without it only the shares count.
    ``shares``: the answer of boto3's ``list_quota_shares``, for what depends on limits.

    Raises BadRequest, BadPolicy.
    """
    known = None if shares is None else read_shares(shares)
    rules = load_policy(Path(policy)) if isinstance(policy, Path | str) else policy or Policy()
    return check_submission(request, rules, known, round(time() * 1000))


def check_submission(
    request: Mapping[str, Any], policy: Policy, shares: tuple[ShareDescription, ...] | None, now: int
) -> Report:
    """The same at a time given, with shares as the product reads them. Raises BadRequest."""
    complete = read_request(request)
    facts = request_facts(complete, policy, shares, now)
    outcome = try_job(policy, facts)
    obstacles = tuple(_obstacles(complete, facts, shares, outcome))
    job = facts.job
    return Report(job.name, job.queue, job.share, policy.hash, policy.paused, obstacles, outcome)


def read_request(request: Mapping[str, Any]) -> dict[str, Any]:
    """The request as boto3 takes it. Raises BadRequest with all that boto3 would refuse."""
    payload = request.get("serviceRequestPayload")
    complete = {"serviceJobType": TYPE, **request}
    if isinstance(payload, Mapping):
        complete["serviceRequestPayload"] = _as_text(payload)
    faults = ParamValidator().validate(complete, _shape())
    if faults.has_errors():
        raise BadRequest(*(f"SubmitServiceJob: {line}" for line in faults.generate_report().splitlines()))
    _check_payload(complete["serviceRequestPayload"])
    if well_formed(complete) != complete:
        raise BadRequest(
            "SubmitServiceJob: half a character (a lone surrogate) in a text: write the whole one"
        )
    return complete


def read_shares(answer: Mapping[str, Any]) -> tuple[ShareDescription, ...]:
    """The shares in an answer of ListQuotaShares. Raises BadRequest."""
    try:
        found = told_shares(answer, MemoryClock(0))
    except (Unavailable, AttributeError, TypeError, LookupError) as error:
        raise BadRequest("not an answer of ListQuotaShares, which has a list quotaShares") from error
    if found.odd:
        raise BadRequest(f"{found.odd} of the rows in quotaShares cannot be read")
    return found.shares


def request_facts(
    request: Mapping[str, Any], policy: Policy, shares: tuple[ShareDescription, ...] | None, now: int
) -> Facts:
    """What rules may know of the job of a complete request, which has not waited yet."""
    described = _described(request, now)
    record = absorb(new_record(described), described)
    own = next((share for share in shares or () if share.name == described.share), None)
    facts = job_facts(record, own, policy, now, shares)
    priority = {"priority": described.priority, "base": described.priority}
    new = {"status": "RUNNABLE", "waiting": 0, "in_status": 0, "trained": 0}
    return facts.model_copy(update={"job": facts.job.model_copy(update=priority | new)})


def _described(request: Mapping[str, Any], now: int) -> JobDescription:
    """As DescribeServiceJob would tell of it, from before tags might still be missing."""
    answer = {
        **request,
        "jobArn": request["jobName"],
        "jobId": request["jobName"],
        "createdAt": now - TAGS_SETTLE,
        "status": "SUBMITTED",
    }
    described = told_job(answer, MemoryClock(now))
    if described is None:
        raise BadRequest("the request cannot be read")
    return described


def _shape() -> Any:
    model = botocore.session.get_session().get_service_model("batch")
    return model.operation_model("SubmitServiceJob").input_shape


def _as_text(payload: Mapping[str, Any]) -> str:
    try:
        return json.dumps(payload, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise BadRequest(f"serviceRequestPayload: cannot be written as JSON: {error}") from error


def _check_payload(text: str) -> None:
    """Batch passes it on unread: what is wrong with it fails only after the dispatch."""
    try:
        payload = json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise BadRequest(f"serviceRequestPayload: not JSON: {where}: {error.msg}") from error
    except RecursionError as error:
        raise BadRequest("serviceRequestPayload: nested too deeply to be read") from error
    except ValueError as error:  # Python reads no whole number of more than 4300 digits
        raise BadRequest(f"serviceRequestPayload: not JSON: {error}") from error
    if not isinstance(payload, dict):
        raise BadRequest("serviceRequestPayload: not an object with the members of CreateTrainingJob")


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no number there: leave it out")


def _obstacles(
    request: Mapping[str, Any], facts: Facts, shares: tuple[ShareDescription, ...] | None, outcome: Outcome
) -> Iterator[Obstacle]:
    yield from _too_large(request)
    if shares is None:
        return
    yield from _no_share(facts.job.share, shares)
    job, share = facts.job, facts.share
    told = any(finding.rule == CANNOT_FIT for finding in outcome.findings)
    if share is not None and job.instance_type is not None and job.instances is not None and not told:
        word = misfit(share, job.instance_type, job.instances)
        if isinstance(word, Misfit):
            yield Obstacle(CANNOT_FIT, word.text)


def _too_large(request: Mapping[str, Any]) -> Iterator[Obstacle]:
    payload = len(request["serviceRequestPayload"].encode())
    whole = len(json.dumps(request).encode())
    for name, size, most in (("payload", payload, LARGEST_PAYLOAD), ("request", whole, LARGEST_REQUEST)):
        if size > most:
            yield Obstacle("size", f"has a {name} of {size} bytes, and Batch takes {most}")


def _no_share(name: str | None, shares: tuple[ShareDescription, ...]) -> Iterator[Obstacle]:
    known = {share.name: share for share in shares}
    if name is None and known:
        yield Obstacle("share", "names no quota share (quotaShareName), and this queue has quota management")
    elif name is not None and name not in known:
        yield Obstacle("share", f"asks for share {name!r}, which the queue has not: {hint(name, known)}")
    elif name is not None and not known[name].enabled:
        yield Obstacle("share", f"asks for share {name}, which is disabled and takes no new jobs")


def _sentence(follows: str, text: str) -> str:
    return f"cannot be judged yet: {text}" if follows == "not decided" else text


def _as_json(finding: Finding) -> dict[str, Any]:
    return {**finding._asdict(), "acts": finding.acts}
