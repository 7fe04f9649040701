"""Acts of guardrails amid everything else over the lab: late and lost events, crashes, bumps, preemptions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress

from sharewarden.domain.observation import TERMINAL
from sharewarden.domain.policy import BlastRadius, Policy, QueuePolicy, SharePolicy
from sharewarden.domain.record import JobRecord
from sharewarden.domain.termination import open_terminations
from sharewarden.ports import Unavailable

from tests.simulation.acts_kit import GIANTS, begins, ends, kill, lower, still_broken
from tests.simulation.faults import Crash
from tests.simulation.test_loop_together import Days, _holds
from tests.simulation.world import MINUTE, facts_of, reproduce, seeds, stored

OURS = "Sharewarden guardrail giants:"


class RuledDays(Days):
    """Rules are broken and hold again as well, of jobs that go on."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        share = SharePolicy(team="research", min_runtime=2 * MINUTE)
        rules = QueuePolicy(mode="enforce", bumps="enforce", shares={"background": share})
        self.one.policies.policy = Policy(
            queues={"ml-train-qm": rules},
            hold=4 * MINUTE,
            guardrails=(GIANTS,),
            blast_radius=BlastRadius(acts=3, percent=100),
        )

    def doings(self) -> Sequence[Callable[[], None]]:
        return (*super().doings(), *[self._begin] * 6, *[self._sweep] * 3, *[self._apply] * 2, self._end)

    def _advance(self, ms: int) -> None:
        super()._advance(ms if self.next is None else ms // 4)

    def _sweep(self) -> None:
        """It sees where each job stands, and what was broken is broken there as well."""
        super()._sweep()
        for item in stored(self.one.ledger, JobRecord):
            with suppress(Crash, Unavailable):
                still_broken(self.one, item.key)

    def _begin(self) -> None:
        self.asked += 1
        now = self.pool.lab.now()
        act = self.rng.choice((lower(f"a{self.asked}", 50), kill(f"t{self.asked}", now + MINUTE)))
        with suppress(Crash, Unavailable, KeyError):
            begins(self.one, act, self._some_job())

    def _some_job(self) -> str:
        jobs = self.pool.lab.state.jobs.values()
        return self.rng.choice(sorted(job.id for job in jobs if job.status not in TERMINAL) or ["none"])

    def _end(self) -> None:
        job = self._some_job()
        known = self.one.ledger.load(JobRecord, job)
        if known is None:
            return
        names = [boost.id for boost in known.priority.boosts] + [wish.id for wish in known.terminations]
        with suppress(Crash, Unavailable):
            ends(self.one, *self.rng.sample(names, min(1, len(names))), job=job)


def _acts_hold(days: RuledDays) -> None:
    one, lab = days.one, days.pool.lab
    shown = {job.id for job in lab.state.jobs.values() if (job.status_reason or "").startswith(OURS)}
    told = Counter(fact.job for fact in facts_of(one.ledger, "terminated"))
    assert set(told.values()) <= {1}
    asked = {job for job, _ in one.batch.terminations}
    assert shown <= set(told), "we have terminated a job, and the audit does not say so"
    assert set(told) <= asked, "the audit says of a job that we never asked for its end that we did"
    given: set[str] = set()
    for item in stored(one.ledger, JobRecord):
        assert isinstance(item, JobRecord)
        assert open_terminations(item.terminations) == (), item.name
        given |= {boost.id for boost in item.priority.boosts}
    ended = {fact.figures["boost"] for fact in facts_of(one.ledger, "boost-ended")}
    assert given <= ended
    for fact in facts_of(one.ledger, "priority-changed"):
        assert (fact.figures["may_evict"] is False) or int(fact.after or 0) < int(fact.before or 0)


def test_law_10_acts_converge_amid_everything_else() -> None:
    terminated = lowered = 0
    for seed in seeds(12):
        days = RuledDays(seed)
        days.live()
        try:
            _acts_hold(days)
            _holds(days.pool, days.one)
        except AssertionError as error:
            raise AssertionError(f"{reproduce('acts_converge_amid', seed)}\n{error}") from error
        terminated += len(facts_of(days.one.ledger, "terminated"))
        lowered += sum(
            fact.actor == "guardrail:giants" for fact in facts_of(days.one.ledger, "priority-changed")
        )
    assert min(terminated, lowered) > 20, "too little happened to show anything"
