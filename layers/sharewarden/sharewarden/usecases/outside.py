"""Guardrails on what is no job of our queues: what rules may know of it, and what is committed."""

from collections.abc import Sequence

from sharewarden.domain.accelerators import gpus_of
from sharewarden.domain.audit import AuditFact
from sharewarden.domain.base import last_part
from sharewarden.domain.observation import TrainingObservation
from sharewarden.domain.other_scopes import Found, guard_training, has_scope
from sharewarden.domain.rules.facts import TrainingFacts
from sharewarden.domain.stored import Stored
from sharewarden.ports import Runtime

from .guarding import FailedRules, known_shares
from .tell import send, unrecorded

#: Batch's own role may create training jobs of no other names (AWSBatchServiceRolePolicyForSageMaker).
OF_BATCH = "awsbatch"


def is_of_batch(training_job: str) -> bool:
    """Whether AWS Batch started the training job, by its ARN."""
    return last_part(training_job).lower().startswith(OF_BATCH)


def found_outside(runtime: Runtime, seen: TrainingObservation) -> tuple[AuditFact, ...]:
    """Put on record what guardrails find in a training job that came through no queue.

    A policy without such a rule costs nothing. Raises Unavailable.
    """
    policy = runtime.policies.current()
    if not has_scope(policy, "training"):
        return ()
    types = {queue: _types(runtime, queue) for queue in sorted(runtime.queues)}
    facts = TrainingFacts(
        now=seen.at,
        name=last_part(seen.training_job),
        arn=seen.training_job,
        status=seen.status,
        instance_type=seen.instance_type,
        instances=seen.instance_count,
        gpus=gpus_of(seen.instance_type, seen.instance_count),
        pool_types=frozenset(),
    )
    found = guard_training(facts, types, policy, FailedRules())
    commit_found(runtime, [], [], found)
    return found.facts


def commit_found(runtime: Runtime, items: Sequence[Stored], facts: Sequence[AuditFact], found: Found) -> None:
    """Keep what was seen with what was found in it, and tell people. Raises Conflict, Unavailable."""
    notices = unrecorded(runtime, found.notices)
    now = runtime.clock.now()
    if items or facts or found.facts:
        runtime.ledger.commit([*items, *notices], [*facts, *found.facts], now)
    send(runtime, notices)


def _types(runtime: Runtime, queue: str) -> frozenset[str]:
    return frozenset(unit for share in known_shares(runtime, queue).shares for unit, _ in share.limits)
