"""What `can_help` says of thousands of random pools, against what the lab's scheduler then does.

Nothing else arrives or ends. Each victim heuristic of the lab is a way in which AWS may choose.
"""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest
from sharewarden.domain.helping.can_help import can_help
from sharewarden.domain.helping.view import PoolView

from .helping_kit import HEURISTICS, Asked, Trial, asked
from .world import reproduce, seeds

POOLS = 500
#: The most answers that may be `unknown`, in percent: at rest, moving, and where the environment is small.
MOST_UNKNOWN = {(True, True): 3, (False, True): 8, (True, False): 4}

SITUATIONS = pytest.mark.parametrize(
    ("rest", "covered"),
    [(True, True), (False, True), (True, False)],
    ids=["at-rest", "moving", "environment-too-small"],
)
EACH_HEURISTIC = pytest.mark.parametrize("heuristic", HEURISTICS)


@cache
def answers(heuristic: str, rest: bool = True, covered: bool = True) -> list[Asked]:
    trials = (Trial(seed, heuristic, rest=rest, covered=covered) for seed in seeds(POOLS))
    return [one for trial in trials for one in asked(trial)]


@EACH_HEURISTIC
@SITUATIONS
def test_law_06_yes_means_that_the_lab_starts_the_job_and_no_that_it_does_not(
    heuristic: str, rest: bool, covered: bool
) -> None:
    for one in answers(heuristic, rest, covered):
        if one.answer.kind != "unknown":
            said = f"{one.answer.kind} {one.answer.reason} at {one.answer.asked}: {one.answer.text}"
            assert one.outcome.started == one.answer.kind.startswith("yes"), (
                f"{said}; {reproduce('law_06_yes_means', one.trial.seed)}"
            )


@EACH_HEURISTIC
@SITUATIONS
def test_law_07_whoever_is_pushed_out_was_named_and_has_had_the_minimum_runtime(
    heuristic: str, rest: bool, covered: bool
) -> None:
    for one in answers(heuristic, rest, covered):
        if not one.answer.kind.startswith("yes"):
            continue
        named = {victim.job: victim for victim in one.answer.victims}
        told = reproduce("law_07_whoever", one.trial.seed)
        assert one.outcome.ages.keys() <= named.keys(), told
        for job, age in one.outcome.ages.items():
            assert age >= one.trial.min_runtime[named[job].share], told


@EACH_HEURISTIC
def test_law_07_the_time_is_when_the_youngest_of_them_is_old_enough(heuristic: str) -> None:
    for one in answers(heuristic):
        view, answer = one.trial.view(), one.answer
        if answer.kind == "yes-at":
            assert answer.at == max(victim.old_enough_at or 0 for victim in answer.victims)
            assert can_help(view, answer.job, answer.asked, one.at - 1).at == one.at
            assert can_help(view, answer.job, answer.asked, one.at).kind == "yes-now"


@EACH_HEURISTIC
@SITUATIONS
def test_law_02_unknown_is_rare(heuristic: str, rest: bool, covered: bool) -> None:
    found = Counter(one.answer.kind for one in answers(heuristic, rest, covered))
    assert found["unknown"] * 100 <= MOST_UNKNOWN[rest, covered] * found.total()


@EACH_HEURISTIC
def test_every_answer_occurs(heuristic: str) -> None:
    found = Counter(one.answer.kind for one in answers(heuristic))
    reasons = Counter(one.answer.reason for one in answers(heuristic))
    assert min(found["yes-now"], found["yes-at"], found["no"]) * 100 > 8 * found.total()
    assert reasons.keys() >= {"room", "push-out", "take-back"}
    assert reasons.keys() >= {"priority-too-low", "never-fits", "share-full", "in-share-off", "nothing-idle"}


def test_the_least_priority_is_the_least() -> None:
    tried = 0
    for one in answers("documented"):
        if one.answer.needs is not None and one.answer.asked == one.answer.needs - 1:
            assert one.answer.kind in ("no", "unknown")
            tried += 1
    assert tried > 100


def test_levers_start_the_job_when_they_are_pulled() -> None:
    pulled: Counter[str] = Counter()
    for one in answers("documented"):
        for lever in one.answer.levers:
            to = lever.value if lever.change == "priority" else 9_999
            assert one.trial.pulled(lever).bumped(one.answer.job, to or 0, one.at).started, (
                f"{lever}; {reproduce('levers', one.trial.seed)}"
            )
            pulled[lever.change] += 1
    assert pulled.keys() == {
        "in-share-preemption",
        "strategy",
        "borrow-limit",
        "capacity-limit",
        "wait",
        "priority",
    }


@pytest.mark.parametrize("lost", ["unit", "instances", "priority", "share"])
def test_law_02_what_is_not_known_of_a_job_in_the_way_is_never_guessed(lost: str) -> None:
    """Whatever was said with it, without it the answer is the same or unknown."""
    unknown = 0
    for seed in seeds(POOLS // 2):
        trial = Trial(seed, "documented")
        for one in asked(trial):
            for hidden in trial.rng.sample(trial.view().jobs, min(3, len(trial.view().jobs))):
                answer = can_help(
                    _without(trial.view(), hidden.job, lost), one.answer.job, one.answer.asked, trial.now
                )
                assert answer.kind in ("unknown", one.answer.kind), reproduce("law_02_what_is", seed)
                unknown += answer.kind == "unknown"
    assert unknown > 100


def _without(view: PoolView, job: str, member: str) -> PoolView:
    jobs = (one.model_copy(update={member: None}) if one.job == job else one for one in view.jobs)
    return view.model_copy(update={"jobs": tuple(jobs)})


def test_law_02_a_share_that_could_not_be_read_leaves_only_what_does_not_depend_on_it() -> None:
    kinds: Counter[str] = Counter()
    for one in answers("documented"):
        view = one.trial.view()
        hidden = one.trial.rng.choice(view.shares)
        fewer = tuple(share for share in view.shares if share is not hidden)
        gap = view.model_copy(update={"shares": fewer, "gaps": ("1 quota shares could not be read",)})
        answer = can_help(gap, one.answer.job, one.answer.asked, one.trial.now)
        assert answer.kind == "unknown" or answer.reason == one.answer.reason == "never-fits"
        kinds[answer.kind] += 1
    assert kinds["unknown"] > 100
