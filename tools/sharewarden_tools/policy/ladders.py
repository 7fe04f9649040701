"""Ladders that cannot do what they say, and promises of SLA classes that nothing can keep."""

from __future__ import annotations

from collections.abc import Iterator

from sharewarden.domain.percent import percent_of
from sharewarden.domain.policy import Bands, LadderStep, Policy, SlaClass

from .problems import Found


def ladder_errors(policy: Policy) -> Iterator[Found]:
    """Steps that would never come, change nothing, or reach beyond what boosts may (design law 4)."""
    bands = [rules.bands for rules in policy.queues.values()] or [Bands()]
    highest = max(one.automatic.highest for one in bands)
    for name, rules in policy.sla.items():
        loc = ("sla", name, "ladder")
        if rules.ladder and not _promises(rules):
            yield Found(
                loc, f"there is no time to climb in: give sla.{name} a start_within or restart_within"
            )
        for index, step in enumerate(rules.ladder):
            for key, text in _step_errors(step, rules.ladder[:index], highest):
                yield Found((*loc, index, *key), text)


def sla_warnings(policy: Policy) -> Iterator[Found]:
    """Classes that promise nothing, or know more than they use."""
    for name, rules in policy.sla.items():
        if not _promises(rules):
            yield Found(("sla", name), "promises nothing: give start_within, restart_within or finish_by")
        if rules.expected_runtime is not None and not rules.finish_by:
            text = "is only used for deadlines: give finish_by: true, or leave it out"
            yield Found(("sla", name, "expected_runtime"), text)


def _promises(rules: SlaClass) -> bool:
    return rules.finish_by or rules.start_within is not None or rules.restart_within is not None


def _step_errors(
    step: LadderStep, before: tuple[LadderStep, ...], highest: int
) -> Iterator[tuple[tuple[str, ...], str]]:
    if step.boost is None and step.notify is None:
        yield (), "does nothing: give it a boost, or somebody to notify, or leave it out"
    last = max((percent_of(one.at) for one in before), default=0)
    if percent_of(step.at) <= last:
        yield (
            ("at",),
            f"{step.at} is not after the step before, {last}%: write more, or put the steps in order",
        )
    if step.boost is None:
        return
    most = max((one.boost or 0 for one in before), default=0)
    if step.boost > highest:
        fix = f"write {highest} or less" if highest else "raise the band of a queue, or leave the boost out"
        yield ("boost",), f"{step.boost} is beyond every automatic band: {fix}"
    elif step.boost <= most:
        text = f"{step.boost} adds nothing to the {most} of a step before (boosts do not add up)"
        yield ("boost",), f"{text}: write more, or leave it out"
