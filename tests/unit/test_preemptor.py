"""Who is taken to be behind a preemption."""

from __future__ import annotations

import pytest
from sharewarden.domain.observation import ShareDescription
from sharewarden.domain.preemption.inference import Cause, Confidence
from sharewarden.domain.preemption.preemptor import (
    GRACE,
    REACTION,
    WINDOW,
    Bump,
    Contender,
    Held,
    Look,
    Victim,
    infer,
)
from sharewarden.domain.share import Lowered
from sharewarden.domain.stored import HOUR, MINUTE, SECOND

from tests.unit.share_kit import UNIT, lending

QUEUE = "q"
BEGAN = 100 * HOUR
STOP = BEGAN + 17_669
STARTED = STOP - STOP % SECOND + 5 * SECOND
"""A dispatch as an event tells it: five seconds after the stop, in whole seconds."""


def share(name: str, limit: int, **more: object) -> ShareDescription:
    return lending(name, QUEUE, limit, **more)


SHARES = (share("background", 1), share("medium", 2), share("urgent", 1, strategy="RESERVE"))
VICTIM = Victim(
    job="victim",
    attempt="t1",
    share="background",
    unit=UNIT,
    instances=1,
    priority=100,
    began_at=BEGAN,
    stopped_at=STOP,
)
OWN = Held("older", "background", UNIT, 1, BEGAN - 2 * HOUR, None, preempted=False)
LOST = Held("victim", "background", UNIT, 1, BEGAN - HOUR, STOP, preempted=True, attempt="t1")


def contender(job: str = "owner", in_share: str = "medium", **more: object) -> Contender:
    known = Contender(
        job=job,
        share=in_share,
        unit=UNIT,
        instances=1,
        priority=100,
        waited_since=BEGAN - 3 * SECOND,
        dispatched_at=STARTED,
        attempt=f"{job}-1",
    )
    return known.model_copy(update=more)


def look(*contenders: Contender, held: tuple[Held, ...] = (OWN, LOST), **more: object) -> Look:
    """The contenders hold what they were given."""
    given = tuple(
        Held(one.job, one.share, one.unit, one.instances or 0, one.dispatched_at, None, preempted=False)
        for one in contenders
    )
    return Look(contenders=contenders, held=(*held, *given), shares=SHARES).model_copy(update=more)


def victim(**update: object) -> Victim:
    return VICTIM.model_copy(update=update)


Expected = tuple[Cause, str | None, Confidence | None]
HIGHER = contender("higher", "background", priority=101)

CASES: dict[str, tuple[Victim, Look, Expected]] = {
    "the owner takes back what it lent": (VICTIM, look(contender()), ("cross-share", "owner", "high")),
    "a higher priority of the same share": (VICTIM, look(HIGHER), ("in-share", "higher", "high")),
    "by the words, in-share": (
        victim(said="in-share"),
        look(HIGHER, contender()),
        ("in-share", "higher", "high"),
    ),
    "by the words, cross-share": (
        victim(said="cross-share"),
        look(HIGHER, contender()),
        ("cross-share", "owner", "high"),
    ),
    "nobody": (VICTIM, look(), ("unknown", None, None)),
    "nobody, but Batch says of what sort": (
        victim(said="cross-share"),
        look(HIGHER),
        ("cross-share", None, None),
    ),
    "another instance type": (VICTIM, look(contender(unit="ml.p5.48xlarge")), ("unknown", None, None)),
    "dispatched before the stop": (
        VICTIM,
        look(contender(dispatched_at=STARTED - 6 * SECOND)),
        ("unknown", None, None),
    ),
    "dispatched a second before the stop": (
        VICTIM,
        look(contender(dispatched_at=STOP - SECOND)),
        ("unknown", None, None),
    ),
    "another victim takes the whole of its grace": (
        VICTIM,
        look(contender(dispatched_at=STOP + GRACE)),
        ("cross-share", "owner", "high"),
    ),
    "a job of the owner's ends in the second of the dispatch": (
        VICTIM,
        look(contender(), held=(OWN, LOST, OWN._replace(share="medium", instances=2, until=STARTED))),
        ("cross-share", "owner", "medium"),
    ),
    "dispatched in the second of the stop": (
        VICTIM,
        look(contender(dispatched_at=STARTED - 5 * SECOND)),
        ("cross-share", "owner", "high"),
    ),
    "dispatched at the end of the window": (
        VICTIM,
        look(contender(dispatched_at=STOP + WINDOW)),
        ("cross-share", "owner", "high"),
    ),
    "dispatched long after": (
        VICTIM,
        look(contender(dispatched_at=STOP + WINDOW + 1)),
        ("unknown", None, None),
    ),
    "it came after the preemption had begun": (
        VICTIM,
        look(contender(waited_since=BEGAN + SECOND)),
        ("unknown", None, None),
    ),
    "it came in the second in which it began": (
        VICTIM,
        look(contender(waited_since=BEGAN + 999)),
        ("cross-share", "owner", "high"),
    ),
    "an owner that borrows takes nothing back": (
        VICTIM,
        look(contender(instances=3)),
        ("unknown", None, None),
    ),
    "a share whose limit is not known": (
        VICTIM,
        look(contender(in_share="new")),
        ("unknown", None, None),
    ),
    "the victim's share did not borrow": (
        VICTIM,
        look(contender(), held=(LOST,)),
        ("unknown", None, None),
    ),
    "nothing is known of the limit of the victim's share": (
        victim(share="new"),
        look(contender(), held=(LOST._replace(share="new"),)),
        ("cross-share", "owner", "high"),
    ),
    "the same priority": (VICTIM, look(contender("equal", "background")), ("unknown", None, None)),
    "in-share preemption is off": (
        VICTIM,
        look(HIGHER, shares=(share("background", 1, in_share_preemption=False),)),
        ("unknown", None, None),
    ),
    "a priority that nobody told": (
        VICTIM,
        look(contender("untold", "background", priority=None)),
        ("in-share", "untold", "medium"),
    ),
    "the victim's priority was not told": (
        victim(priority=None),
        look(HIGHER),
        ("in-share", "higher", "medium"),
    ),
    "one needs more than was freed": (
        VICTIM,
        look(contender(instances=2)),
        ("cross-share", "owner", "medium"),
    ),
    "a number of instances that nobody told": (
        VICTIM,
        look(contender(instances=None)),
        ("cross-share", "owner", "medium"),
    ),
    "several victims of one": (
        VICTIM,
        look(
            contender(instances=2), held=(OWN, LOST, LOST._replace(job="v2", attempt="t2", until=STOP + 900))
        ),
        ("cross-share", "owner", "high"),
    ),
    "a victim of long before frees nothing for it": (
        VICTIM,
        look(
            contender(instances=2), held=(OWN, LOST, LOST._replace(job="v2", attempt="t2", until=BEGAN - 1))
        ),
        ("cross-share", "owner", "medium"),
    ),
    "another came to its own end meanwhile": (
        VICTIM,
        look(contender(), held=(OWN, LOST, OWN._replace(job="ended", share="urgent", until=BEGAN + SECOND))),
        ("cross-share", "owner", "medium"),
    ),
    "one victim of two: the first is named, not surely": (
        victim(instances=2),
        look(contender("late", dispatched_at=STARTED + SECOND), contender("early")),
        ("cross-share", "early", "medium"),
    ),
    "more than two: a guess": (
        VICTIM,
        look(contender("a"), contender("b"), contender("c", "urgent")),
        ("cross-share", "a", "low"),
    ),
    "two of different sorts, and no words": (
        VICTIM,
        look(contender(), HIGHER),
        ("cross-share", "owner", "medium"),
    ),
    "when it began was not told": (
        victim(began_told=False, began_at=STOP),
        look(contender()),
        ("cross-share", "owner", "medium"),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_who_is_behind_it(name: str) -> None:
    who, around, expected = CASES[name]
    found = infer(who, around)
    assert (found.kind, found.job, found.confidence) == expected
    assert (found.job is None) == (found.attempt is None) == (found.waited_since is None)


# --- lowered limits -----------------------------------------------------------------------------------------


def lowered(of: str = "background", at: int = BEGAN - SECOND, **more: object) -> Lowered:
    known = Lowered(share=of, unit=UNIT, before=2, after=1, not_before=at, at=at)
    return known.model_copy(update=more)


BOUNDED = share("background", 1, borrow_limit=0)
LENT = (share("background", 1), share("medium", 0), share("urgent", 3, strategy="RESERVE"))
LIMITS: dict[str, tuple[Victim, Look, Expected]] = {
    "of its own share, which may not borrow": (
        VICTIM,
        look(shares=(BOUNDED,), lowered=(lowered(),)),
        ("lowered-limit", None, "high"),
    ),
    "of a share that reserves": (
        VICTIM,
        look(shares=(share("background", 1, strategy="RESERVE"),), lowered=(lowered(),)),
        ("lowered-limit", None, "high"),
    ),
    "of a share that reserves as much as it uses": (
        VICTIM,
        look(shares=(share("background", 2, strategy="RESERVE"),), lowered=(lowered(),)),
        ("unknown", None, None),
    ),
    "of a share that is gone": (
        VICTIM,
        look(shares=(), lowered=(lowered(),)),
        ("lowered-limit", None, "high"),
    ),
    "as early as Batch may still act on it": (
        VICTIM,
        look(shares=(BOUNDED,), lowered=(lowered(at=BEGAN - REACTION),)),
        ("lowered-limit", None, "high"),
    ),
    "in the second in which it began": (
        VICTIM,
        look(shares=(BOUNDED,), lowered=(lowered(at=BEGAN + SECOND),)),
        ("lowered-limit", None, "high"),
    ),
    "all that is borrowed is lent still": (
        VICTIM,
        look(shares=(share("background", 1), share("medium", 1)), lowered=(lowered("medium"),)),
        ("unknown", None, None),
    ),
    "of its own share, which may borrow what it uses": (
        VICTIM,
        look(shares=(share("background", 1, borrow_limit=100), share("medium", 2)), lowered=(lowered(),)),
        ("unknown", None, None),
    ),
    "of the share that had lent to it": (
        VICTIM,
        look(shares=LENT, lowered=(lowered("medium"),)),
        ("lowered-limit", None, "high"),
    ),
    "what is borrowed is lent still": (
        VICTIM,
        look(lowered=(lowered("medium"),)),
        ("unknown", None, None),
    ),
    "of another type": (
        VICTIM,
        look(shares=(BOUNDED,), lowered=(lowered(unit="ml.p5.48xlarge"),)),
        ("unknown", None, None),
    ),
    "too long before": (
        VICTIM,
        look(shares=(BOUNDED,), lowered=(lowered(at=BEGAN - REACTION - 1),)),
        ("unknown", None, None),
    ),
    "after it had begun": (
        VICTIM,
        look(shares=(BOUNDED,), lowered=(lowered(at=BEGAN + SECOND + 1),)),
        ("unknown", None, None),
    ),
    "at some time between two sweeps": (
        VICTIM,
        look(shares=(BOUNDED,), lowered=(lowered(not_before=BEGAN - MINUTE, at=BEGAN + 4 * MINUTE),)),
        ("lowered-limit", None, "high"),
    ),
    "Batch says that it was a higher priority": (
        victim(said="in-share"),
        look(shares=(BOUNDED,), lowered=(lowered(),)),
        ("in-share", None, None),
    ),
    "an owner that takes back would do as well": (
        VICTIM,
        look(contender(), shares=(BOUNDED, share("medium", 1)), lowered=(lowered(),)),
        ("lowered-limit", None, "medium"),
    ),
    "when it began was not told: the grace counts": (
        victim(began_told=False, began_at=STOP),
        look(shares=(BOUNDED,), lowered=(lowered(at=STOP - REACTION - GRACE),)),
        ("lowered-limit", None, "medium"),
    ),
}


@pytest.mark.parametrize("name", LIMITS)
def test_a_lowered_limit_has_no_preemptor(name: str) -> None:
    who, around, expected = LIMITS[name]
    found = infer(who, around)
    assert (found.kind, found.job, found.confidence) == expected


def test_the_evidence_is_in_figures() -> None:
    bump = Bump(id="b1", kind="human", amount=750, by="U1")
    found = infer(VICTIM, look(HIGHER.model_copy(update={"bump": bump, "priority": 850})))
    assert found.figures == {
        "candidates": 1,
        "dispatched_at": STARTED,
        "dispatched_after": (STARTED - STOP) / SECOND,
        "waited_before": 3.0,
        "instances": 1,
        "freed": 1,
        "others_left": False,
        "share_used": 2,
        "share_limit": 1,
        "priority": 850,
        "victim_priority": 100,
        "bump": {"id": "b1", "kind": "human", "amount": 750, "by": "U1"},
    }
    assert found.why == "alone of those who had waited, it was dispatched 4 s after the stop"


@pytest.mark.parametrize(
    ("told", "until", "counts"),
    [
        (True, BEGAN, True),
        (True, BEGAN - 1, False),
        (True, STARTED + SECOND, True),
        (True, STARTED + SECOND + 1, False),
        (False, STOP - GRACE, True),
        (False, STOP - GRACE - 1, False),
    ],
)
def test_what_was_freed_since_it_began_counts(told: bool, until: int, counts: bool) -> None:
    who = VICTIM if told else victim(began_told=False, began_at=STOP)
    second = LOST._replace(job="v2", attempt="t2", until=until)
    found = infer(who, look(contender(), held=(OWN, LOST, second)))
    assert found.figures["freed"] == (2 if counts else 1)


def test_the_evidence_of_a_lowered_limit_is_what_was_lowered() -> None:
    found = infer(VICTIM, look(shares=LENT, lowered=(lowered("medium"),)))
    assert found.why == f"just before, the limit of share medium for {UNIT} was lowered to 1"
    assert found.figures == {
        "share": "medium",
        "limit_before": 2,
        "limit": 1,
        "lowered_at": BEGAN - SECOND,
        "used": 2,
        "candidates": 0,
    }
