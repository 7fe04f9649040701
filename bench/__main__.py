"""`python -m bench [--quick] [--json]`, from the root of the repo."""

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict

from .calls import calls
from .checkpoints import checkpoints
from .cold_start import cold_start
from .guardrails import guardrails
from .open_jobs import open_jobs, sweeps
from .scheduler import scheduler
from .section import Section
from .throughput import throughput


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench", description="What costs time and calls, as ratios."
    )
    parser.add_argument(
        "--quick", action="store_true", help="few rounds and jobs: shows that the bench works"
    )
    parser.add_argument("--json", action="store_true", help="one JSON document instead of tables")
    options = parser.parse_args()
    sections = _sections(options.quick)
    if options.json:
        json.dump([asdict(section) for section in sections], sys.stdout, indent=2)
        print()
        return
    for section in sections:
        print(section.text(), flush=True)


def _sections(quick: bool) -> Iterator[Section]:
    """Each as soon as it is measured; what is going on meanwhile is told on a terminal."""
    parts: dict[str, Callable[[], list[Section]]] = {
        "cold start": lambda: cold_start(rounds=2 if quick else 15),
        "AWS calls": lambda: [calls()],
        "events per second": lambda: [throughput(jobs=40 if quick else 500, rounds=2 if quick else 7)],
        "rules beside AWS calls": lambda: [guardrails(jobs=20 if quick else 100)],
        "open jobs": lambda: [open_jobs((50, 500) if quick else (100, 100_000), events=20 if quick else 100)],
        "sweeps": lambda: [sweeps(records=100 if quick else 1_000, rounds=2 if quick else 7)],
        "checkpoints": lambda: [checkpoints((2_000, 4_000) if quick else (20_000, 200_000))],
        "lab scheduler": lambda: [scheduler((50, 200) if quick else (2_000, 20_000))],
    }
    for name, part in parts.items():
        if sys.stderr.isatty():
            print(f"measuring {name} ...", file=sys.stderr)
        yield from part()


main()
