"""How often each answer is given to random pools: `python -m tests.simulation.helping_counts [POOLS]`."""

from __future__ import annotations

import sys
from collections import Counter

from .helping_kit import HEURISTICS, Trial, asked

KINDS = ("yes-now", "yes-at", "no", "unknown")


def counts(pools: int, heuristic: str, **of_the_pool: bool) -> Counter[str]:
    """Answers by kind, and by kind and reason."""
    found: Counter[str] = Counter()
    for seed in range(pools):
        for one in asked(Trial(seed, heuristic, **of_the_pool)):
            found.update((one.answer.kind, f"{one.answer.kind} {one.answer.reason}"))
    return found


def main(pools: int) -> None:
    """Pools at rest, pools where something is under way, and some whose environment holds too little."""
    for name, of_the_pool in (
        ("at rest", {}),
        ("moving", {"rest": False}),
        ("environment too small", {"covered": False}),
    ):
        print(f"{name}\n  {'':<14}{''.join(f'{kind:>9}' for kind in KINDS)}  unknown because")
        for heuristic in HEURISTICS:
            found = counts(pools, heuristic, **of_the_pool)
            why = (f"{key.split()[1]} {n}" for key, n in sorted(found.items()) if key.startswith("unknown "))
            print(f"  {heuristic:<14}{''.join(f'{found[kind]:>9}' for kind in KINDS)}  {', '.join(why)}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000)
