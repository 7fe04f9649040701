"""Two policies pushed at once, lost answers, transactions that came to nothing: in memory and on DynamoDB."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from threading import Barrier
from typing import Any

import pytest
from sharewarden.domain.policy import Policy
from sharewarden.ports import Conflict, PolicyStore, Unavailable
from sharewarden.usecases.push_policy import ATTEMPTS, Overtaken, push
from sharewarden_tools.memory import MemoryClock

from tests.contract.policy_kit import CAP, HELD, NOW, PAUSED, Kept, kept, pushed, request

__all__ = ["kept"]


def test_of_two_pushes_one_wins_and_the_other_learns_who_did(kept: Kept) -> None:
    pushed(kept, Policy(hold=1))
    seen = kept.store.current()
    push(kept.store, MemoryClock(NOW), request(PAUSED, "arn:ana"), seen, CAP)
    with pytest.raises(Overtaken) as lost:
        push(kept.store, MemoryClock(NOW + 9), request(HELD, "arn:ben"), seen, CAP)
    assert str(lost.value).startswith(
        f"arn:ana pushed version 2, {PAUSED.hash}, at 2026-09-14T08:00:00Z: see what it changes"
    )
    assert [fact.after for fact in kept.facts()][1:] == [PAUSED.hash]
    assert len(list(kept.store.history())) == 2


def test_a_push_over_what_was_put_by_hand_meanwhile_says_so(kept: Kept) -> None:
    pushed(kept, PAUSED)
    seen = kept.store.current()
    kept.by_hand(HELD.model_dump_json())
    with pytest.raises(Overtaken, match=f"put into the table by hand: {HELD.hash}"):
        push(kept.store, MemoryClock(NOW), request(Policy()), seen, CAP)
    kept.by_hand(PAUSED.model_dump_json())
    seen = kept.store.current()
    kept.by_hand(HELD.model_dump_json())
    with pytest.raises(Overtaken):
        push(kept.store, MemoryClock(NOW), request(Policy()), seen, CAP)


def test_the_first_push_ever_does_not_cover_what_was_put_by_hand_meanwhile(kept: Kept) -> None:
    kept.by_hand(HELD.canonical)
    with pytest.raises(Overtaken, match=f"by hand: {HELD.hash}"):
        push(kept.store, MemoryClock(NOW), request(PAUSED), None, CAP)
    assert [entry.hash for entry in kept.store.history()] == [HELD.hash]


def test_a_policy_that_was_put_back_meanwhile_is_another_version(kept: Kept) -> None:
    pushed(kept, PAUSED)
    seen = kept.store.current()
    pushed(kept, HELD, NOW + 1)
    pushed(kept, PAUSED, NOW + 2)
    with pytest.raises(Overtaken):
        push(kept.store, MemoryClock(NOW + 3), request(Policy()), seen, CAP)


@pytest.mark.parametrize("before", [0, 1, 2], ids=["first ever", "over a version", "over one by hand"])
def test_of_pushes_at_once_exactly_one_wins(kept: Kept, before: int) -> None:
    if before == 1:
        pushed(kept, Policy(hold=1))
    elif before:
        kept.by_hand(Policy(hold=1).model_dump_json())
    writers, seen = 4, kept.store.current()
    barrier = Barrier(writers)

    def write(writer: int) -> str | None:
        asked = request(Policy(hold=1000 + writer), f"arn:{writer}")
        barrier.wait()
        try:
            push(kept.store, MemoryClock(NOW), asked, seen, CAP)
        except Overtaken as error:
            return str(error)
        return None

    with ThreadPoolExecutor(writers) as pool:
        answers = list(pool.map(write, range(writers)))
    (winner,) = [number for number, answer in enumerate(answers) if answer is None]
    losers = [answer for answer in answers if answer is not None]
    assert all(answer.startswith(f"arn:{winner} pushed version ") for answer in losers)
    current = kept.store.current()
    assert current is not None
    assert current.author == f"arn:{winner}"
    assert [fact.actor for fact in kept.facts() if fact.at == NOW][-1:] == [f"arn:{winner}"]
    assert len(kept.facts()) == 1 + (before == 1)


class Meddled:
    """A store before whose n-th call something happens; ``lost``: its puts work, their answers are lost."""

    def __init__(self, store: PolicyStore, at: int, meddle: Any, *, lost: bool = False) -> None:
        self._store, self._at, self._meddle, self._lost = store, at, meddle, lost
        self.calls = 0

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any) -> Any:
            self.calls += 1
            if self.calls == self._at:
                self._meddle()
            answer = getattr(self._store, name)(*args)
            if name == "put" and self._lost:
                raise Unavailable("TransactWriteItems: ReadTimeoutError")
            return answer

        return call


@pytest.mark.parametrize("lost", [False, True], ids=["answered", "answer lost"])
@pytest.mark.parametrize("boundary", [1, 2, 3, 4])
def test_another_push_at_any_call_of_ours(kept: Kept, boundary: int, lost: bool) -> None:
    """Whoever comes first: one record a version, and whoever lost knows it."""
    pushed(kept, Policy(hold=1))

    def another() -> None:
        pushed(kept, PAUSED, NOW + 1, author="arn:eve")

    between = Meddled(kept.store, boundary, another, lost=lost)
    seen = between.current()
    overtaken = boundary == 2  # between our look and our put
    loses = pytest.raises(Overtaken, match="arn:eve pushed version 2") if overtaken else nullcontext()
    with loses:
        done = push(between, MemoryClock(NOW + 2), request(HELD), seen, CAP)
        assert kept.store.version(done.version.number) == done.version
    versions = [entry.hash for entry in kept.store.history()]
    assert sorted(fact.after or "" for fact in kept.facts()) == sorted(versions)
    assert len(versions) == (2 if between.calls < boundary or overtaken else 3)


def test_a_lost_answer_is_found_to_be_done(kept: Kept) -> None:
    once = Meddled(kept.store, 0, None, lost=True)
    done = push(once, MemoryClock(NOW), request(PAUSED), None, CAP)
    assert done.new
    assert kept.store.current() == done.version.model_copy(update={"text": ""})
    assert len(kept.facts()) == 1


def test_a_lost_answer_that_cannot_be_looked_after_is_found_by_the_next_push(kept: Kept) -> None:
    def throttled() -> None:
        raise Unavailable("GetItem: ThrottlingException")

    with pytest.raises(Unavailable):
        push(Meddled(kept.store, 2, throttled, lost=True), MemoryClock(NOW), request(PAUSED), None, CAP)
    again = pushed(kept, PAUSED, NOW + 1)
    assert (again.new, again.version.at) == (False, NOW)
    assert len(kept.facts()) == 1


class Cancelling:
    """A store whose first puts meet another transaction that writes nothing in the end."""

    def __init__(self, store: PolicyStore, times: int) -> None:
        self._store, self._left = store, times

    def put(self, *args: Any) -> None:
        self._left -= 1
        if self._left >= 0:
            raise Conflict("another policy was put")
        self._store.put(*args)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


@pytest.mark.parametrize("times", [1, ATTEMPTS - 1])
def test_a_transaction_that_came_to_nothing_is_not_taken_for_a_winner(kept: Kept, times: int) -> None:
    assert push(Cancelling(kept.store, times), MemoryClock(NOW), request(PAUSED), None, CAP).new
    with pytest.raises(Unavailable, match="tries in a row"):
        push(Cancelling(kept.store, ATTEMPTS), MemoryClock(NOW), request(HELD), kept.store.current(), CAP)


class Down:
    """A store that can be read and not written."""

    def __init__(self, store: PolicyStore) -> None:
        self._store = store
        self.tried = 0

    def put(self, *_args: Any) -> None:
        self.tried += 1
        raise Unavailable("TransactWriteItems: ThrottlingException")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def test_what_aws_does_not_take_is_said_at_once(kept: Kept) -> None:
    down = Down(kept.store)
    with pytest.raises(Unavailable, match="ThrottlingException"):
        push(down, MemoryClock(NOW), request(PAUSED), None, CAP)
    assert (down.tried, kept.store.current(), kept.facts()) == (1, None, [])
