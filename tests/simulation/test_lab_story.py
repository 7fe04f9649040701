"""The three-team story, and how it changes when one setting is flipped."""

from __future__ import annotations

import pytest

from tests.simulation.lab_kit import Json, Kit, payload, share

STARTED = "Batch Service Job Preemption Started"
CROSS = "PREEMPTION_IN_PROGRESS: Cross-share preemption triggered to reclaim borrowed capacity"
LONG = payload(runtime_seconds=100_000)


def pool(*, medium: str = "LEND_AND_BORROW", in_share: bool = True, heuristic: str = "documented") -> Kit:
    shares = (
        share("background", in_share=in_share),
        share("medium", strategy=medium),
        share("urgent", strategy="RESERVE"),
    )
    return Kit(*shares, environment=3, heuristic=heuristic)


def preempted(kit: Kit) -> list[tuple[str, str]]:
    """Victims and reasons, in order."""
    return [(d["preemptedJobArn"].rsplit("/", 1)[-1], d["statusReason"]) for d in kit.sent(STARTED)]


def tell(kit: Kit) -> Json:
    """Background fills the pool, medium and urgent arrive, a background job is raised."""
    first = kit.submit("background", 10, LONG)
    second = kit.submit("background", 10, LONG)
    kit.pass_time(60)
    urgent = kit.submit("urgent", request=LONG)
    medium = kit.submit("medium", request=LONG)
    kit.pass_time(120)
    waiting = next((job for job in (first, second) if kit.status(job) == "RUNNABLE"), None)
    if waiting:
        kit.batch("UpdateServiceJob", jobId=waiting, schedulingPriority=500)
        kit.pass_time(120)
    return {"first": first, "second": second, "medium": medium, "urgent": urgent, "raised": waiting}


@pytest.mark.parametrize("heuristic", ["documented", "random", "adversarial"])
def test_as_documented(heuristic: str) -> None:
    kit = pool(heuristic=heuristic)
    jobs = tell(kit)
    (borrower, why), (pushed_out, in_share) = preempted(kit)
    assert why == CROSS
    assert borrower == jobs["raised"]
    assert {borrower, pushed_out} == {jobs["first"], jobs["second"]}
    assert "in-share" in in_share.lower()
    running = [jobs["raised"], jobs["medium"], jobs["urgent"]]
    assert kit.statuses(running) == ["RUNNING"] * 3
    assert kit.status(pushed_out) == "RUNNABLE"


def test_without_in_share_preemption_the_raised_job_waits() -> None:
    kit = pool(in_share=False)
    jobs = tell(kit)
    assert [why for _, why in preempted(kit)] == [CROSS]
    assert kit.status(jobs["raised"]) == "RUNNABLE"


def test_a_reserved_share_lends_nothing_so_nothing_is_taken_back() -> None:
    kit = pool(medium="RESERVE", in_share=False)
    jobs = tell(kit)
    assert preempted(kit) == []
    assert kit.statuses([jobs["medium"], jobs["urgent"]]) == ["RUNNING", "RUNNING"]


def test_the_urgent_share_is_never_touched() -> None:
    kit = pool()
    urgent = kit.submit("urgent", request=LONG)
    for priority in range(40):
        kit.submit("background", priority, payload(runtime_seconds=200))
        kit.submit("medium", priority, payload(runtime_seconds=200))
        kit.pass_time(30)
    assert len(preempted(kit)) > 5
    assert urgent not in [job for job, _ in preempted(kit)]
    assert kit.describe(urgent)["status"] == "RUNNING"


def test_every_job_ends_when_the_load_ends() -> None:
    kit = pool()
    jobs = [
        kit.submit(name, n, payload(runtime_seconds=300))
        for n in range(10)
        for name in ("background", "medium")
    ]
    kit.finish()
    assert kit.statuses(jobs) == ["SUCCEEDED"] * len(jobs)
    assert kit.lab.next_due() is None


@pytest.mark.parametrize("heuristic", ["documented", "random", "adversarial"])
def test_the_same_seed_tells_the_same_story(heuristic: str) -> None:
    spans = {"pending_ms": (1_000, 90_000), "downloading_ms": (1_000, 90_000)}

    def events(seed: int) -> list[Json]:
        kit = Kit(
            share("a", 2, in_share=True),
            share("b", 2),
            environment=4,
            seed=seed,
            heuristic=heuristic,
            **spans,
        )
        for n in range(12):
            kit.submit("ab"[n % 2], n % 5, payload(runtime_seconds=50 * n + 10))
            kit.pass_time(20)
        kit.finish()
        return kit.events

    assert events(1) == events(1)
    assert [e["time"] for e in events(1)] != [e["time"] for e in events(2)]
