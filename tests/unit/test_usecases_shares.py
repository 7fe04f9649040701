"""Changes of quota shares, told by CloudTrail, found by the sweep, or both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import pytest
from sharewarden.domain.share import ShareRecord
from sharewarden.ports import Shares
from sharewarden_tools.memory import MemoryBatch

from tests.simulation.samples import SHARE, api_call, described, share
from tests.simulation.world import MINUTE, QUEUE, World, facts_of, stored, world


def pool() -> World:
    one = world()
    one.batch.tell(described())
    return one


SHARE_STORIES: dict[str, tuple[str, dict[str, int]]] = {
    # o: CloudTrail tells of the last change, w: the sweep looks, 1-9: somebody sets that limit
    "told before the sweep": ("w2ow", {"quota-share-change": 1, "attribution": 0}),
    "told after the sweep": ("w2wo", {"quota-share-change": 1, "attribution": 1}),
    "never told": ("w2w", {"quota-share-change": 1, "attribution": 0}),
    "told twice": ("w2oowo", {"quota-share-change": 1, "attribution": 0}),
    "there and back, both told": ("w2o1ow", {"quota-share-change": 2, "attribution": 0}),
    "there and back, found both, told late": ("w2w1wpo", {"quota-share-change": 2, "attribution": 2}),
    "there and back between two sweeps, never told": ("w21w", {"quota-share-change": 0, "attribution": 0}),
    "there and back and there": ("w2w1w2w", {"quota-share-change": 3, "attribution": 0}),
    "told, then found": ("w2ow3w", {"quota-share-change": 2, "attribution": 0}),
    "deleted": ("w0w", {"quota-share-change": 1, "attribution": 0}),
}


@pytest.mark.parametrize("story", SHARE_STORIES)
@pytest.mark.parametrize("pace", [MINUTE, 1500])
def test_a_share_change_is_on_record_once(story: str, pace: int) -> None:
    one = pool()
    one.batch.quota_shares[QUEUE] = [share(1)]
    changed: list[int] = []
    acts: dict[str, Callable[[], object]] = {
        "w": lambda: one.sweep(f"sweep-{one.clock.now()}"),
        "o": lambda: one.take(api_call("UpdateQuotaShare", {"quotaShareArn": SHARE}, changed[-1])),
        "p": lambda: one.take(api_call("UpdateQuotaShare", {"quotaShareArn": SHARE}, changed[-2])),
    }
    steps, expected = SHARE_STORIES[story]
    for step in steps:
        one.clock.advance(pace)
        if step in acts:
            acts[step]()
            continue
        changed.append(one.clock.now())
        one.batch.quota_shares[QUEUE] = [share(int(step))] if step != "0" else []
    assert {kind: len(facts_of(one.ledger, kind)) for kind in expected} == expected


LOWERINGS: dict[str, list[tuple[int, int]]] = {
    # before and after
    "2w1w": [(2, 1)],
    "2w1ow": [(2, 1)],
    "2w3w": [],
    "2ww": [],
    "2w0w": [(2, 0)],
    "3w2w1w": [(3, 2), (2, 1)],
    "2w1w2w": [(2, 1)],
}


@pytest.mark.parametrize("story", LOWERINGS)
def test_a_limit_that_was_lowered_is_remembered_with_when(story: str) -> None:
    """By CloudTrail's word, else at some time between two sweeps."""
    one = pool()
    looks: list[int] = []
    changed = told = 0
    for step in story:
        one.clock.advance(MINUTE)
        if step == "w":
            looks.append(one.clock.now())
            one.sweep(f"sweep-{one.clock.now()}")
        elif step == "o":
            told = changed // 1000 * 1000
            one.take(api_call("UpdateQuotaShare", {"quotaShareArn": SHARE}, changed))
        else:
            changed = one.clock.now()
            one.batch.quota_shares[QUEUE] = [share(int(step))] if step != "0" else []
    (record,) = stored(one.ledger, ShareRecord)
    assert isinstance(record, ShareRecord)
    assert [(each.before, each.after) for each in record.lowered] == LOWERINGS[story]
    for each in record.lowered:
        assert (each.share, each.unit) == ("background", "ml.g5.xlarge")
        assert (each.not_before, each.at) in ([(told, told)] if told else list(pairwise(looks)))


class Slow(MemoryBatch):
    """Somebody changes a share while the answer that shows it is under way."""

    def shares(self, queue: str) -> Shares:
        self._clock.advance(2 * MINUTE)  # type: ignore[attr-defined]
        self.quota_shares[queue] = [share(2)]
        answer = super().shares(queue)
        self._clock.advance(MINUTE)  # type: ignore[attr-defined]
        return answer


@pytest.mark.parametrize("behind", [0, 3000], ids=["right clocks", "our clock is behind"])
def test_a_change_that_comes_while_batch_answers_is_on_record_once(behind: int) -> None:
    one = pool()
    one.batch.quota_shares[QUEUE] = [share(1)]
    one.sweep("first")
    slow = Slow(one.clock)
    slow.tell(described())
    one.clock.advance(MINUTE)
    at = one.clock.now() + (2 * MINUTE if not behind else 3 * MINUTE + behind)
    replace(one, runtime=replace(one.runtime, batch=slow)).sweep("second")
    one.take(api_call("UpdateQuotaShare", {"quotaShareArn": SHARE}, at))
    one.batch.quota_shares[QUEUE] = [share(2)]
    one.sweep("third")
    assert len(facts_of(one.ledger, "quota-share-change")) == 1
    assert len(facts_of(one.ledger, "attribution")) == 1


OTHER = f"{QUEUE}/quota-share/made-by-hand"


@pytest.mark.parametrize("told", [False, True])
def test_a_share_made_by_hand_is_a_change_once_the_queue_was_looked_at(told: bool) -> None:
    one = pool()
    one.batch.quota_shares[QUEUE] = [share(1)]
    one.sweep("first")
    assert facts_of(one.ledger, "quota-share-change") == []
    one.clock.advance(MINUTE)
    one.batch.quota_shares[QUEUE] = [
        share(1),
        share(1).model_copy(update={"arn": OTHER, "name": "made-by-hand"}),
    ]
    if told:
        one.take(api_call("CreateQuotaShare", {"quotaShareArn": OTHER}, one.clock.now()))
    one.clock.advance(MINUTE)
    one.sweep("second")
    one.sweep("third")
    (fact,) = facts_of(one.ledger, "quota-share-change")
    assert (fact.share, fact.before) == ("made-by-hand", None if told else "absent")
