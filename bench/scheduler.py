"""How fast the lab plays a pool, and whether that depends on how many jobs wait."""

from time import process_time

from .pool import Pool
from .section import Section

SHARES = 20
INSTANCES_A_SHARE = 10


def scheduler(jobs: tuple[int, int]) -> Section:
    rates = [_rate(number) for number in jobs]
    rows = [
        {"jobs": number, "jobs/s": rate, "speed against the first": rate / rates[0]}
        for number, rate in zip(jobs, rates, strict=True)
    ]
    return Section(
        f"Lab scheduler, {SHARES} shares of {INSTANCES_A_SHARE} instances",
        "jobs submitted and played to their end: scheduling, in-share preemption, training jobs, events; "
        "in CPU time; a speed ratio of 1.00 means that a longer queue costs nothing",
        "everything: the lab in virtual time, each job trains for an hour, events have one listener",
        rows,
    )


def _rate(jobs: int) -> float:
    """Jobs per second of CPU time. Every job must end."""
    pool = Pool(SHARES, INSTANCES_A_SHARE)
    ended: list[str] = []
    pool.lab.subscribe(
        lambda event: ended.append(event["id"]) if event["detail"].get("status") == "SUCCEEDED" else None
    )
    began = process_time()
    pool.play(jobs)
    taken = process_time() - began
    assert len(ended) == jobs, f"{len(ended)} of {jobs} jobs ended"
    return jobs / taken
