"""One job under people, time, faults and strangers: the priority ledger keeps laws 2, 3, 4, 5, 9 and 10."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress

from sharewarden.domain.observation import JobDescription
from sharewarden.domain.policy import Policy, QueuePolicy
from sharewarden.domain.priority import Boost, effective, live_boosts
from sharewarden.ports import Page, Runtime, Unavailable
from sharewarden.usecases.apply import apply
from sharewarden.usecases.bump import BumpRequest, Refused, UnbumpRequest, bump, unbump
from sharewarden_tools.memory import MemoryBatch, MemoryClock

from tests.simulation.samples import HOUR, JOB, described, state
from tests.simulation.world import (
    ENFORCE,
    MINUTE,
    NOW,
    QUEUE,
    TickingClock,
    facts_of,
    reproduce,
    seeds,
    world,
)

BANDS = ENFORCE.queue(QUEUE).bands
SHADOW = Policy(queues={"ml-train-qm": QueuePolicy()})


class ShakyBatch(MemoryBatch):
    """Loses requests, loses answers, and lets a request whose answer was lost take effect a little later.

    ``effects`` are our changes as they took effect: (before, after). ``strangers`` are those of others.
    """

    def __init__(self, clock: MemoryClock, rng: random.Random) -> None:
        super().__init__(clock)
        self.rng = rng
        self.faults = 0.2
        self.effects: list[tuple[int, int]] = []
        self.strangers: list[int] = []
        self.known: Callable[[], int | None] = lambda: None
        """What Sharewarden takes to be shown."""
        self.boosts: Callable[[], tuple[Boost, ...]] = tuple
        self.dispatches: list[int] = []
        self.bumped_at: int | None = None
        """When the first boost was given."""
        self._late: list[tuple[int, int]] = []

    @property
    def shown(self) -> int:
        return self.descriptions[JOB].priority or 0

    def describe(self, job: str) -> JobDescription | None:
        self.land()
        self._shake()
        return super().describe(job)

    def jobs(self, queue: str, status: str, token: str | None) -> Page:  # type: ignore[override]
        self.land()
        self._shake()
        return super().jobs(queue, status, token)  # type: ignore[arg-type]

    def set_priority(self, job: str, priority: int) -> None:
        assert self.down is None
        if self.rng.random() < self.faults:
            how = self.rng.choice(("never", "now", "late"))
            if how == "now":
                self._take_effect(priority)
            if how == "late":
                self._late.append((self._clock.now() + self.rng.randint(0, 90_000), priority))
            raise Unavailable(f"lost, {how}")
        self._check_hold(priority)
        assert self.known() == self.shown, "a value that we have not read, or not accepted, was overwritten"
        self._take_effect(priority)

    def _check_hold(self, priority: int) -> None:
        job = self.descriptions[JOB]
        if priority < self.shown and job.status == "RUNNING" and self.bumped_at is not None:
            since, held = job.scheduled_at or 0, self._clock.now() - 30 * MINUTE
            assert since < self.bumped_at or since <= held or self._was_held(since, held), "lowered too early"

    def _was_held(self, since: int, held: int) -> bool:
        """An earlier dispatch was held, after the time of every boost that the job has started under."""
        over = max((boost.until or 0 for boost in self.boosts() if boost.since < since + 1000), default=since)
        return any(over < dispatched <= held for dispatched in self.dispatches)

    def land(self) -> None:
        due = [one for one in self._late if one[0] <= self._clock.now()]
        self._late = [one for one in self._late if one not in due]
        for _, priority in due:
            self._take_effect(priority)

    def stranger(self, priority: int) -> None:
        self.strangers.append(priority)
        self.tell(self.descriptions[JOB].model_copy(update={"priority": priority}))

    def _take_effect(self, priority: int) -> None:
        self.effects.append((self.shown, priority))
        self.tell(self.descriptions[JOB].model_copy(update={"priority": priority}))

    def _shake(self) -> None:
        if self.rng.random() < self.faults:
            raise Unavailable("shaken")


class Trial:
    """A random life; ``strange``: others change the priority too."""

    def __init__(self, seed: int, *, strange: bool) -> None:
        self.rng = random.Random(seed)
        self.clock = TickingClock(NOW)
        self.batch = ShakyBatch(self.clock, self.rng)
        self.world = world(batch=self.batch, clock=self.clock)
        self.strange = strange
        self.asked = 0
        self.retry: list[tuple[int, str, int]] = []
        self.batch.known = lambda: self.world.record(JOB).priority.confirmed
        self.batch.boosts = lambda: self.world.record(JOB).priority.boosts
        self.batch.tell(described())
        self.batch.faults = 0
        self.world.take(state("RUNNABLE", NOW))
        self.batch.faults = 0.2

    @property
    def runtime(self) -> Runtime:
        return self.world.runtime

    def live(self, steps: int = 60) -> None:
        acts: list[Callable[[], None]] = [self.bump, self.apply, self.apply, self.sweep, self.wait, self.move]
        acts += [self.unbump, self.repeat, self.govern]
        acts += [self.stranger] if self.strange else []
        for _ in range(steps):
            with suppress(Unavailable, Refused):
                self.rng.choice(acts)()
            self.check()

    # What may happen.

    def bump(self) -> None:
        self.asked += 1
        now = self.clock.now()
        lasts = self.rng.choice((None, 30 * MINUTE, 4 * HOUR))
        what = {self.rng.choice(("by", "to")): self.rng.randint(1, 999)}
        asked = BumpRequest(id=f"b{self.asked}", job=JOB, actor="U1", reason="r", lasts=lasts, **what)
        bump(self.runtime, asked)
        if self.world.policies.policy != SHADOW:
            self.batch.bumped_at = self.batch.bumped_at or now

    def unbump(self) -> None:
        self.asked += 1
        unbump(self.runtime, UnbumpRequest(id=f"u{self.asked}", job=JOB, actor="U2", reason="r"))

    def apply(self) -> None:
        """Messages in order; what failed comes again after six minutes, and so long nothing else does."""
        self.world.pending += self.world.wishes.drain()
        if self.retry and self.retry[0][0] > self.clock.now():
            return
        self.retry = []
        while self.world.pending:
            try:
                apply(self.runtime, *self.world.pending[0])
            except Unavailable:
                self.retry = [(self.clock.now() + 6 * MINUTE, "", 0)]
                return
            self.world.pending.pop(0)

    def repeat(self) -> None:
        """An old message once more."""
        if self.world.wishes.sent and not self.retry:
            apply(self.runtime, *self.rng.choice(self.world.wishes.sent))

    def sweep(self) -> None:
        self.world.sweep(f"sweep-{self.clock.now()}")

    def wait(self) -> None:
        self.clock.advance(self.rng.choice((1_000, MINUTE, 10 * MINUTE, HOUR)))

    def move(self) -> None:
        """Dispatched, or preempted."""
        now = self.clock.now()
        if self.batch.descriptions[JOB].status == "RUNNABLE":
            self.batch.dispatches.append(now)
            update = {"status": "RUNNING", "scheduled_at": now, "attempt": f"attempt-{now}"}
        else:
            update = {"status": "RUNNABLE", "attempt": None}
        self.batch.tell(self.batch.descriptions[JOB].model_copy(update=update))

    def stranger(self) -> None:
        self.batch.stranger(1000 + len(self.batch.strangers))

    def govern(self) -> None:
        """The admin pauses, goes back to shadow, or lets it run."""
        self.world.policies.policy = self.rng.choice(
            (ENFORCE, ENFORCE, ENFORCE, ENFORCE.model_copy(update={"paused": True}), SHADOW)
        )

    # What must hold.

    def check(self) -> None:
        ledger = self.world.record(JOB).priority
        for _, value in self.batch.effects[-3:]:
            highest = max([BANDS.human.highest, 200, *self.batch.strangers])
            assert 0 <= value <= highest, "a boost went above its band"
        assert ledger.base in {200, *self.batch.strangers}, "the base is nobody's"

    def finish(self) -> None:
        """The faults stop, everybody may act; two sweeps."""
        self.batch.faults = 0
        self.clock.advance(2 * MINUTE)
        self.batch.land()
        self.world.policies.policy = ENFORCE
        self.retry = []
        for _ in range(2):
            self.clock.advance(20 * MINUTE)
            self.sweep()
            self.world.apply_until_done()


def _settled(trial: Trial) -> None:
    ledger = trial.world.record(JOB).priority
    assert (ledger.wish, ledger.sent, ledger.suspect) == (None, None, None)
    assert ledger.confirmed == trial.batch.shown == effective(ledger, BANDS)
    ended = {fact.figures["boost"] for fact in facts_of(trial.world.ledger, "boost-ended")}
    assert ended >= {boost.id for boost in ledger.boosts if boost.end}


def _is_told(trial: Trial) -> None:
    """Each effect of ours is on record once and as it was; with strangers, none that did not happen."""
    facts = sorted(facts_of(trial.world.ledger, "priority-changed"), key=lambda fact: fact.figures["version"])
    told = [(int(fact.before or 0), int(fact.after or 0)) for fact in facts]
    if not trial.strange:
        assert told == trial.batch.effects
    else:
        # A late effect may meet a stranger's value, where we had read another one.
        assert {after for _, after in told} <= {after for _, after in trial.batch.effects}
    dropped = {fact.figures["version"] for fact in facts_of(trial.world.ledger, "wish-dropped")}
    assert not dropped & {fact.figures["version"] for fact in facts}, "dropped, and done"


def _run(seed: int, *, strange: bool) -> Trial:
    trial = Trial(seed, strange=strange)
    trial.live()
    trial.finish()
    _settled(trial)
    _is_told(trial)
    return trial


def test_law_05_the_priority_converges_under_faults() -> None:
    for seed in seeds(150):
        try:
            trial = _run(seed, strange=False)
            assert not facts_of(trial.world.ledger, "drift"), "our own value passed for drift"
        except AssertionError as error:
            raise AssertionError(f"{reproduce('priority_converges', seed)}\n{error}") from error


def test_law_03_a_stranger_is_never_fought() -> None:
    for seed in seeds(150):
        try:
            trial = _run(seed, strange=True)
            if trial.batch.strangers and trial.batch.shown in trial.batch.strangers:
                assert facts_of(trial.world.ledger, "drift")
        except AssertionError as error:
            raise AssertionError(f"{reproduce('stranger_is_never_fought', seed)}\n{error}") from error


def test_law_05_every_boost_ends_with_the_job() -> None:
    for seed in seeds(50):
        trial = Trial(seed, strange=seed % 2 == 1)
        trial.live(30)
        ended = {"status": "FAILED", "stopped_at": trial.clock.now(), "reason": "by hand"}
        trial.batch.tell(trial.batch.descriptions[JOB].model_copy(update=ended))
        trial.finish()
        ledger = trial.world.record(JOB).priority
        where = reproduce("every_boost_ends", seed)
        assert not live_boosts(ledger), where
        assert ledger.wish is None, where
        asked = {
            fact.key.rpartition("#")[2]
            for fact in facts_of(trial.world.ledger, "bump")
            if fact.mode == "enforce"
        }
        done = [fact.figures["boost"] for fact in facts_of(trial.world.ledger, "boost-ended")]
        assert sorted(done) == sorted(asked), where


def test_law_09_shadow_writes_nothing_to_batch() -> None:
    for seed in seeds(30):
        trial = Trial(seed, strange=True)
        trial.govern = trial.wait  # type: ignore[method-assign]
        trial.world.policies.policy = SHADOW
        trial.live()
        assert trial.batch.effects == [], reproduce("shadow_writes_nothing", seed)
        assert {fact.mode for fact in facts_of(trial.world.ledger, "bump")} <= {"shadow"}


def test_law_02_nothing_is_written_while_batch_cannot_be_read() -> None:
    for seed in seeds(30):
        trial = Trial(seed, strange=True)
        trial.live(30)
        before = list(trial.batch.effects)
        trial.batch.faults = 1
        trial.live(60)
        late = trial.batch.effects[len(before) :]
        assert len(late) <= 1, reproduce("cannot_be_read", seed)  # sent before, landed now
