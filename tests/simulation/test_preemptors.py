"""Measures and preemptors in random pools, beside what the lab knows: it chose the victims itself."""

from __future__ import annotations

from collections import Counter

import pytest
from sharewarden.domain.audit import AuditRecord
from sharewarden_tools.lab import Options
from sharewarden_tools.lab.model import Preemption

from tests.simulation.preempting_kit import cared
from tests.simulation.world import reproduce, seeds

#: ``quiet``: Batch's words tell nothing of the sort. ``lost``: a fifth of the events never come.
SETTINGS: dict[str, tuple[Options, float]] = {
    "documented": (Options(), 0),
    "quiet": (Options(in_share_reason="Preempted", limit_reason="Preempted"), 0),
    "lost": (Options(heuristic="random"), 0.2),
}
#: Of those called so, so many per cent must be right: cause and job.
AT_LEAST = {"high": 95, "medium": 75}


@pytest.mark.parametrize("setting", SETTINGS)
def test_what_is_called_likely_is_right(setting: str) -> None:
    options, lost = SETTINGS[setting]
    right, called = Counter[str](), Counter[str]()
    for seed in seeds(16):
        story = cared(seed, options, lost=lost)
        for attempt, fact in story.told("preemptor").items():
            confidence = fact.figures["confidence"] or "none"
            called[confidence] += 1
            right[confidence] += _is_right(fact, story.truth[attempt])
    told = {name: f"{right[name]} of {called[name]}" for name in called}
    print(setting, told)
    assert called["high"] > called["none"], told
    for name, percent in AT_LEAST.items():
        assert 100 * right[name] >= percent * called[name], told


def _is_right(fact: AuditRecord, truth: Preemption) -> bool:
    kind = "lowered-limit" if truth.kind == "limit" else truth.kind
    return (fact.figures["kind"], fact.figures["preemptor"]) == (kind, truth.demander)


@pytest.mark.parametrize("seed", seeds(6))
def test_law_01_each_preempted_attempt_is_measured_once(seed: int) -> None:
    story = cared(seed, Options())
    line = reproduce("test_law_01_each_preempted_attempt_is_measured_once", seed)
    measured = story.told("preemption-measure")
    assert measured.keys() == story.told("preemption").keys() == story.truth.keys(), line
    assert all(_adds_up(fact) for fact in measured.values()), line


def _adds_up(fact: AuditRecord) -> bool:
    """Nobody has looked into S3 in this story: nothing of what was saved is known."""
    figures = fact.figures
    never_ran = figures["basis"] == "not-started"
    return (figures["basis"] == "unseen" or never_ran) and (figures["lost_seconds"] is None) != never_ran


def test_the_owner_s_wait_is_that_of_the_job_that_came() -> None:
    story = cared(3, Options())
    waits = [
        fact.figures
        for fact in story.told("preemptor").values()
        if fact.figures["kind"] == "cross-share" and fact.figures["preemptor"]
    ]
    assert waits
    for figures in waits:
        record = story.world.record(figures["preemptor"])
        assert figures["waited_since"] >= record.created_at
        assert figures["waited_seconds"] == (figures["running_at"] - figures["waited_since"]) / 1000
