"""Whether a bump helps: each answer with its reason, its levers, its victims and its figures."""

from typing import Any

import pytest
from sharewarden.domain.helping.view import JobView, PoolView, ShareView
from sharewarden.domain.stored import MINUTE

from .helping_kit import NOW, OTHER, UNIT, ask, pool, runs, share, waits

FULL = (runs("a"), runs("b"))
BIG = waits("big", instances=2, priority=7)
LENDER = share("nlp", own=2, in_share_preemption=False)
OFF = share(strategy="LEND", in_share_preemption=False)
HIGHEST = runs("a", instances=2, priority=9999)
BORROWED = tuple(runs(f"r{n}", share="nlp") for n in range(4))
IN_THE_OTHERS = runs("n", share="nlp", instances=2)

ANSWERS = {
    "it passes one that is too big": (pool(runs("a"), BIG, waits()), 9, "yes-now", "room"),
    "it pushes out a lower one": (pool(*FULL, waits()), 9, "yes-now", "push-out"),
    "it takes back what was lent out": (
        pool(share(), LENDER, *BORROWED, waits("big", instances=3, priority=7), waits()),
        *(9, "yes-now", "take-back"),
    ),
    "over": (pool(waits(status="SUCCEEDED")), 9, "no", "ended"),
    "it runs": (pool(runs("mine")), 9, "no", "dispatched"),
    "no raise": (pool(*FULL, waits()), 5, "no", "not-a-raise"),
    "more than its limit": (pool(OFF, waits(instances=3)), 9, "no", "never-fits"),
    "no limit for its type": (pool(waits(unit=OTHER)), 9, "no", "never-fits"),
    "more than the environment": (pool(waits(instances=2), environment={UNIT: 1}), 9, "no", "never-fits"),
    "only higher ones to push out": (pool(*FULL, waits()), 8, "no", "priority-too-low"),
    "still behind": (pool(runs("a"), BIG, waits()), 6, "no", "priority-too-low"),
    "there is nothing above 9999": (
        pool(runs("a", priority=9999), waits("big", instances=2, priority=9999, created_at=1), waits()),
        *(9999, "no", "outranked"),
    ),
    "a full share that pushes nobody out": (pool(OFF, *FULL, waits()), 9, "no", "in-share-off"),
    "a full share of higher ones": (pool(share(strategy="LEND"), HIGHEST, waits()), 9, "no", "share-full"),
    "nothing to borrow": (pool(share(), LENDER, HIGHEST, IN_THE_OTHERS, waits()), 9, "no", "nothing-idle"),
    "the environment is full": (
        pool(OFF, LENDER, IN_THE_OTHERS, waits(), environment={UNIT: 2}),
        *(9, "no", "environment-full"),
    ),
}


@pytest.mark.parametrize(("view", "to", "kind", "reason"), ANSWERS.values(), ids=ANSWERS.keys())
def test_answers(view: PoolView, to: int, kind: str, reason: str) -> None:
    answer = ask(view, to)
    assert (answer.kind, answer.reason) == (kind, reason), answer.text
    assert answer.text


BUSY = (*FULL, waits())


@pytest.mark.parametrize(
    ("view", "reason", "words"),
    [
        (pool(*BUSY, waits("x", unit=None)), "unread", "not all is known of x"),
        (pool(*BUSY, waits("x", instances=None)), "unread", "not all is known of x"),
        (pool(*BUSY, waits("x", priority=None)), "unread", "not all is known of x"),
        (pool(*BUSY, waits("x", share="gone")), "unread", "not all is known of x"),
        (pool(*BUSY, waits("x", share=None)), "unread", "not all is known of x"),
        (pool(*BUSY[:2], waits(instances=None)), "unread", "its instance type, number"),
        (pool(*BUSY[:2], waits(unit=None)), "unread", "its instance type"),
        (pool(*BUSY[:2], waits(priority=None)), "unread", "priority is not known"),
        (pool(*BUSY[:2], waits(share="gone")), "unread", "its share gone could not be read"),
        (pool(*BUSY[:2], waits(share=None)), "unread", "its share (none)"),
        (pool(*BUSY, gaps=("1 jobs could not be read",)), "unread", "1 jobs could not be read"),
        (pool(*BUSY).model_copy(update={"environment": None}), "unread", "what the service environment"),
        (pool(*BUSY[:2]), "not-seen", "not among"),
        (pool(*BUSY[:2], waits(status="SUBMITTED")), "not-queued-yet", "it is SUBMITTED"),
        (pool(*BUSY, waits("x", status="SUBMITTED", share="vision")), "under-way", "x is about to be queued"),
        (pool(runs("a", stopping=True), *BUSY[1:]), "under-way", "a is being stopped"),
        (pool(runs("a"), waits()), "moving", "mine of share vision could start already"),
        (pool(*BUSY, runs("c")), "moving", "more ml.g6e.12xlarge is in use than the limits cover"),
        (pool(*BUSY[:1], runs("b", dispatched_at=None), waits()), "ages-unknown", "since when"),
    ],
)  # fmt: skip
def test_law_02_what_is_not_known_or_not_settled_is_unknown(view: PoolView, reason: str, words: str) -> None:
    answer = ask(view)
    assert (answer.kind, answer.reason) == ("unknown", reason), answer.text
    assert words in answer.text


ELSEWHERE = share("nlp", limits={OTHER: 2}, strategy="RESERVE")


@pytest.mark.parametrize(
    "other",
    [
        waits("x", unit=OTHER, share="nlp", instances=None),
        waits("x", unit=OTHER, share="nlp", status="SUBMITTED"),
        runs("x", unit=OTHER, share="nlp", stopping=True),
    ],
)
def test_what_is_open_on_another_instance_type_does_not_matter(other: JobView) -> None:
    assert ask(pool(share(), ELSEWHERE, *BUSY, other)).kind == "yes-now"
    # unless a share that waits for both links them
    linked = pool(
        share(limits={UNIT: 2, OTHER: 0}), ELSEWHERE, *BUSY, other, waits("y", unit=OTHER, priority=1)
    )
    assert ask(linked).kind == "unknown"


def test_an_unknown_environment_does_not_hide_what_no_environment_would_change() -> None:
    view = pool(share(strategy="LEND"), HIGHEST, waits())
    answer = ask(view.model_copy(update={"environment": None}))
    assert (answer.kind, answer.reason) == ("no", "share-full")


@pytest.mark.parametrize(("disabled", "kind"), [(True, "unknown"), (False, "yes-now")])
def test_whether_a_disabled_share_lends_is_not_documented(disabled: bool, kind: str) -> None:
    big = waits("big", instances=3, priority=7)
    lender = share("nlp", enabled=not disabled, strategy="LEND")
    view = pool(share(), lender, runs("a", instances=2, priority=9999), big, waits())
    assert ask(view).kind == kind


REQUEUED = {"created_at": NOW - 50 * MINUTE, "queued_at": NOW - MINUTE}


@pytest.mark.parametrize(
    ("ahead", "mine", "kind"),
    [
        ({"created_at": NOW - 2}, {"created_at": NOW - 1}, "no"),
        ({"created_at": NOW - 1}, {"created_at": NOW - 2}, "yes-now"),
        ({"created_at": NOW - 1}, {"created_at": NOW - 1}, "unknown"),
        (REQUEUED, {"created_at": NOW - 30 * MINUTE}, "unknown"),
        ({"created_at": NOW - 30 * MINUTE}, REQUEUED, "unknown"),
        (REQUEUED, {"created_at": NOW - 55 * MINUTE}, "yes-now"),
    ],
)
def test_the_order_among_equals_is_that_of_submission_where_nobody_was_requeued(
    ahead: dict[str, int], mine: dict[str, int], kind: str
) -> None:
    view = pool(runs("a", priority=9), waits("big", instances=2, priority=9, **ahead), waits(**mine))
    answer = ask(view, to=9)
    assert answer.kind == kind, answer.text
    assert kind != "unknown" or answer.reason == "undocumented"
    assert answer.needs == (9 if kind == "yes-now" else 10)


def test_an_earlier_borrower_may_hold_up_a_later_one() -> None:
    """FIFO is documented, whether those behind a job that finds too little wait with it is not."""
    shares = (share(own=1), share("nlp", own=1), share("lender", own=2, strategy="LEND"))
    held = (runs("a", priority=9999), runs("n", share="nlp"))
    big = waits("big", share="nlp", instances=3, created_at=NOW - 2 * MINUTE)
    blocked = waits("blocked", instances=4, priority=7, created_at=NOW - 3 * MINUTE)
    mine = waits(created_at=NOW - MINUTE)
    assert ask(pool(*shares, *held, big, blocked, mine)).reason == "undocumented"
    either = ask(pool(*shares, runs("a"), held[1], big, blocked, mine))
    assert (either.kind, either.reason) == ("yes-now", "push-out"), "one way or the other, it starts"
    assert ask(pool(*shares, *held, blocked, mine)).kind == "yes-now"
    earlier = waits(created_at=NOW - 4 * MINUTE)
    assert ask(pool(*shares, *held, big, blocked, earlier)).kind == "yes-now"


@pytest.mark.parametrize(
    ("limits", "instances"),
    [({"strategy": "RESERVE"}, 2), ({"borrow_limit": 100}, 3), ({}, 5), ({}, 7)],
    ids=["its limit", "its borrow limit", "all that is lent", "the environment"],
)
def test_a_job_that_can_never_start_holds_up_no_other_share(limits: dict[str, Any], instances: int) -> None:
    nlp = share("nlp", own=1, **limits)
    shares = (share(own=1), nlp, share("lender", own=2, strategy="LEND"), share("kept", strategy="RESERVE"))
    held = (runs("a", priority=9999), runs("n", share="nlp"))
    never = waits("never", share="nlp", instances=instances, created_at=NOW - 2 * MINUTE)
    blocked = waits("blocked", instances=4, priority=7, created_at=NOW - 3 * MINUTE)
    answer = ask(pool(*shares, *held, never, blocked, waits(created_at=NOW - MINUTE)))
    assert answer.kind == "yes-now", answer.text


def test_law_07_it_helps_once_the_youngest_possible_victim_is_old_enough() -> None:
    young = runs("b", priority=7, dispatched_at=NOW - 4 * MINUTE, status="STARTING", started_at=None)
    view = pool(runs("a", priority=6), young, waits())
    answer = ask(view)
    assert (answer.kind, answer.at) == ("yes-at", NOW + 6 * MINUTE)
    assert ask(view, now=NOW + 6 * MINUTE).kind == "yes-now"
    assert (answer.needs, ask(view, to=7).kind) == (7, "yes-now"), "the young one is not lower than 7"


def test_victims_are_named_with_what_they_would_lose() -> None:
    saved = runs("saved", priority=5, saved_at=NOW - MINUTE, sla="silver", team="t")
    fresh = runs("fresh", priority=6, status="SCHEDULED", started_at=None)
    dark = runs("dark", priority=7, started_at=None)
    guarded = share(own=4, min_runtime=0, protected=True)
    answer = ask(pool(guarded, saved, fresh, dark, runs("high", priority=9), waits()))
    told = {one.job: (one.loses, one.saved, one.gpus, one.sla, one.protected) for one in answer.victims}
    assert told == {
        "saved": (MINUTE, True, 4, "silver", True),
        "fresh": (0, False, 4, None, True),
        "dark": (None, False, 4, None, True),
    }
    assert [one.job for one in answer.victims] == ["saved", "fresh", "dark"], "lower ones are likelier"
    assert answer.victims[0].old_enough_at == NOW - 31 * MINUTE
    assert {one.loses for one in ask(pool(*FULL, waits())).victims} == {30 * MINUTE}


def test_victims_of_those_that_were_held_up_are_named_apart() -> None:
    """Once it starts, the next of its share has its turn, on whichever type."""
    view = pool(
        share(limits={UNIT: 2, OTHER: 1}),
        *FULL,
        waits(priority=5),
        runs("other", unit=OTHER, priority=1, dispatched_at=NOW),
        waits("next", unit=OTHER, priority=4),
    )
    answer = ask(view)
    assert [(one.job, one.direct) for one in answer.victims] == [("a", True), ("b", True), ("other", False)]
    assert (answer.kind, answer.at) == ("yes-at", NOW + 10 * MINUTE)


def test_places_needs_and_figures() -> None:
    shares = (share(borrow_limit=100), share("nlp", own=3, strategy="LEND"))
    view = pool(
        *shares,
        runs("a", instances=3, priority=7),
        runs("n", share="nlp"),
        waits("x", priority=6, instances=2),
        waits(),
    )
    answer = ask(view, to=7)
    assert (answer.position, answer.position_after, answer.needs, answer.kind) == (2, 1, 7, "yes-now")
    figures = answer.figures
    assert figures is not None
    assert figures.model_dump() == {
        "unit": UNIT, "asked": 1, "used": 3, "own": 2, "most": 4, "borrowed": 1, "lent": 1, "idle": 2,
        "lack": 0, "environment": 5, "environment_used": 4,
    }  # fmt: skip


def changes(*members: ShareView | JobView, to: int = 9) -> dict[str, tuple[Any, ...]]:
    levers = ask(pool(*members), to).levers
    return {f"{one.change} {one.job or ''}".strip(): (one.share, one.value, one.at) for one in levers}


def test_levers_are_named_only_where_they_help() -> None:
    high = runs("a", priority=9999, instances=2, expected_end=NOW + MINUTE)
    lender = share("nlp", own=3, strategy="LEND")
    off = share(strategy="LEND", in_share_preemption=False)
    assert changes(off, lender, high, waits()) == {
        "strategy": ("vision", None, None),
        "capacity-limit": ("vision", 3, None),
        "wait a": ("vision", None, NOW + MINUTE),
    }
    limited = share(borrow_limit=0, in_share_preemption=False)
    assert changes(limited, lender, runs("a", instances=2), waits()) == {
        "in-share-preemption": ("vision", None, None),
        "borrow-limit": ("vision", 50, None),
        "capacity-limit": ("vision", 3, None),
        "wait a": ("vision", None, None),
    }
    assert changes(runs("a", priority=12, instances=2), waits(), to=6) == {"priority": ("vision", 13, None)}


def test_a_borrow_limit_is_rounded_up() -> None:
    shares = (share(own=3, borrow_limit=0), share("nlp", own=3, strategy="LEND"))
    assert changes(*shares, runs("a", priority=9999, instances=3), waits())["borrow-limit"][1] == 34


def test_law_02_what_there_is_to_borrow_is_not_known_where_shares_are_missing() -> None:
    view = pool(*BUSY[:2], waits(instances=3), environment={UNIT: 9})
    assert ask(view).reason == "never-fits"
    assert ask(view.model_copy(update={"gaps": ("1 quota share could not be read",)})).reason == "unread"


def test_the_soonest_end_is_waited_for_first_then_that_of_the_oldest() -> None:
    held = (
        runs("old", priority=9999, dispatched_at=NOW - 99 * MINUTE),
        runs("young", priority=9999),
        runs("late", priority=9999, expected_end=NOW + 9),
        runs("soon", priority=9999, expected_end=NOW + 8),
    )
    levers = ask(pool(share(own=4, strategy="RESERVE"), *held, waits())).levers
    assert [one.job for one in levers if one.change == "wait"] == ["soon", "late", "old"]


def test_one_waits_for_a_borrower_of_another_share_only_if_no_owner_is_served_first() -> None:
    shares = (share(own=1, in_share_preemption=False), share("nlp", own=2, in_share_preemption=False))
    held = (runs("a", priority=9999), runs("n", share="nlp", instances=2))
    alone, contested = (*shares, *held, waits()), (*shares, *held, waits("owner", share="nlp"), waits())
    assert "wait n" in changes(*alone)
    assert "wait n" not in changes(*contested)


def named(view: PoolView) -> dict[str, bool]:
    return {one.job: one.direct for one in ask(view).victims}


def test_what_a_large_victim_leaves_over_may_start_others_who_push_out_more() -> None:
    large, third = runs("large", instances=3), runs("third", share="nlp", priority=1)
    wants = waits("wants", share="nlp", instances=3)
    assert named(pool(share(own=3), share("nlp", own=1), large, third, wants, waits())) == {
        "large": True,
        "third": False,
    }
    both = share("nlp", limits={UNIT: 1, OTHER: 1})
    behind = waits("behind", share="nlp", unit=OTHER, priority=4)
    other = runs("other", share="nlp", unit=OTHER, priority=1)
    assert "other" in named(pool(share(own=3), both, large, third, other, wants, behind, waits()))


def test_victims_that_wait_again_may_take_back_what_their_share_lent_out() -> None:
    shares = (share(own=3), LENDER, share("idle", own=2, strategy="LEND"))
    pushed = (runs("x", instances=2), runs("y", instances=2))
    borrower = runs("borrower", share="nlp", instances=3)
    assert named(pool(*shares, *pushed, borrower, waits())) == {"x": True, "y": True, "borrower": False}
    larger = (runs("x", instances=4),)
    assert named(pool(*shares, *larger, borrower, waits())) == {"x": True}


def test_where_the_environment_is_too_small_an_owner_of_another_share_may_be_served_first() -> None:
    small = {UNIT: 2}
    owner = waits("owner", share="nlp")
    assert ask(pool(share(), LENDER, *FULL, owner, waits(), environment=small)).kind == "unknown"
    assert ask(pool(share(), LENDER, *FULL, waits(), environment=small)).kind == "yes-now"


def test_where_the_environment_is_too_small_what_is_taken_back_depends_on_the_choice() -> None:
    blocked = waits("blocked", instances=4, priority=7)
    borrowers = (runs("x", share="nlp"), runs("y", share="nlp", instances=2))
    mine = waits(instances=3)
    assert ask(pool(share(own=3), LENDER, *borrowers, blocked, mine, environment={UNIT: 4})).kind == "unknown"
    assert ask(pool(share(own=3), LENDER, *borrowers, blocked, mine)).reason == "take-back"
